"""Coroutines and callbacks to promises."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from inspect import isawaitable
from types import CoroutineType
from typing import Any, ClassVar

from koi_lang.errors import KoiError, capture, error_of
from koi_lang.js.calling import apply, apply_to, describe
from koi_lang.js.conversions import PRIMITIVES
from koi_lang.js.environment import current_environment
from koi_lang.js.errors import MADE, AggregateErrorValue, TypeErrorValue, catch_value, caught, running_place, thrown
from koi_lang.js.iteration import iterate
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.task_scope import TaskScope, Work, current_scope
from koi_lang.js.undefined import Value, undefined

__all__ = ["PROMISE", "Promise", "TaskScope", "settle", "spawn", "to_promise"]


class Promise:
    """A value that comes later; awaiting it gives the value or raises what it was rejected with."""

    __slots__ = ("_future", "_handled", "_made", "_scope", "_taken")
    __koi_members__: ClassVar[dict[str, str]] = {
        "then": "then", "catch": "catch", "finally": "lastly", "toString": "__str__",
    }  # fmt: skip

    def __init__(self, future: asyncio.Future[Value], scope: TaskScope) -> None:
        self._future = future
        self._scope = scope
        self._handled = False
        self._taken = False
        self._made = running_place()

    def __await__(self) -> Generator[Any, Any, Value]:
        self.handle()
        if self._future.done():
            # One turn of the event loop even if there is nothing to wait for, as in JavaScript.
            yield
            return self._future.result()
        return (yield from asyncio.shield(self._future).__await__())

    def __str__(self) -> str:
        return "[object Promise]"

    @property
    def future(self) -> asyncio.Future[Value]:
        """The future beneath; whoever takes it looks after a rejection."""
        self.handle()
        return self._future

    def take_outcome(self) -> tuple[str, Value]:
        """The state, for the program to go on with. Raises the error of a rejection that no code may catch."""
        if self._future.done() and not self._future.cancelled() and (error := self._future.exception()) is not None:
            catch_value(error)
        return self.state

    @property
    def state(self) -> tuple[str, Value]:
        """`pending`, `fulfilled` or `rejected`, with the value or the error as `catch` would bind it."""
        if not self._future.done():
            return "pending", undefined
        if self._future.cancelled():
            return "rejected", TypeErrorValue("The work was cancelled")
        error = self._future.exception()
        return ("fulfilled", self._future.result()) if error is None else ("rejected", caught(error))

    def handle(self) -> None:
        """Note that somebody looks after a rejection."""
        self._handled = True
        self._scope.handle(self)

    def watch(self, future: asyncio.Future[Value]) -> None:
        """Tell the scope when this was rejected and nobody looks after it."""
        error = None if future.cancelled() else future.exception()
        if error is not None and not self._handled:
            setattr(error, MADE, self._made)
            self._scope.reject(self, error)

    def resolve(self, value: Value = undefined) -> None:
        """Fulfil with a value, or follow another promise; only the first call of this and `reject` counts."""
        if self._taken:
            return
        self._taken = True
        if value is self:
            self._fail(TypeErrorValue("Chaining cycle detected for promise"))
        elif _later(value):
            self._scope.start(self._follow(value), current_environment().fork_context())
        else:
            self._finish(value)

    def reject(self, reason: Value = undefined) -> None:
        """Reject with a reason; only the first call of this and `resolve` counts."""
        if not self._taken:
            self._taken = True
            self._made = running_place() or self._made
            self._fail(thrown(reason))

    def then(self, fulfilled: Value = undefined, rejected: Value = undefined) -> Promise:
        """A promise of what one of the callbacks makes of the outcome."""
        return spawn(_then(self, fulfilled, rejected))

    def catch(self, rejected: Value = undefined) -> Promise:
        """A promise of what the callback makes of the error."""
        return spawn(_then(self, undefined, rejected))

    def lastly(self, callback: Value = undefined) -> Promise:
        """A promise of the same outcome once the callback has run."""
        return spawn(_finally(self, callback))

    async def _follow(self, value: Value) -> None:
        ended = await capture(settle(value))
        if ended.error is None:
            self._finish(ended.value)
        else:
            self._fail(ended.error)

    def _finish(self, value: Value) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self.watch(self._future)


def spawn(coroutine: Work) -> Promise:
    """Start a coroutine in the innermost scope; it runs up to its first wait before this returns.

    Raises:
        KoiError: there is no scope.
    """
    try:
        scope, context = current_scope(), current_environment().fork_context()
    except KoiError:
        coroutine.close()
        raise
    task = scope.start(settle(coroutine), context)
    promise = Promise(task, scope)
    task.add_done_callback(promise.watch)
    return promise


def start_coroutine(value: Value) -> Value:
    """A coroutine to its promise, anything else as it is."""
    return spawn(value) if type(value) is CoroutineType else value


async def settle(value: Value) -> Value:
    """Wait for a value as `await` does: promises, coroutines, and objects with a `then`; others come back at once."""
    while _later(value):
        value = await (_adopt_thenable(value) if isinstance(value, dict) else value)
    return value


def to_promise(value: Value = undefined) -> Promise:
    """A promise as it is, anything else as a promise fulfilled with it."""
    if isinstance(value, Promise):
        return value
    promise = _pending()
    promise.resolve(value)
    return promise


def _later(value: Value) -> bool:
    if isinstance(value, dict):
        return callable(value.get("then"))
    return not isinstance(value, PRIMITIVES) and isawaitable(value)


def _adopt_thenable(thenable: dict[str, Value]) -> Promise:
    then = thenable["then"]
    return _promise(lambda resolve, reject: apply_to(thenable, then, resolve, reject))


def _pending() -> Promise:
    return Promise(asyncio.get_running_loop().create_future(), current_scope())


def _promise(executor: Value = undefined) -> Promise:
    """`new Promise((resolve, reject) => …)`."""
    if not callable(executor):
        raise TypeErrorValue(f"Promise resolver {describe(executor)} is not a function")
    promise = _pending()
    error = error_of(lambda: start_coroutine(apply(executor, promise.resolve, promise.reject)))
    if error is not None:
        promise.reject(caught(error))
    return promise


async def _then(promise: Promise, fulfilled: Value, rejected: Value) -> Value:
    ended = await capture(promise)
    if ended.error is not None and callable(rejected):
        return await settle(apply(rejected, catch_value(ended.error)))
    value = ended.result()
    return await settle(apply(fulfilled, value)) if callable(fulfilled) else value


async def _finally(promise: Promise, callback: Value) -> Value:
    try:
        return await promise
    finally:
        if callable(callback):
            await settle(apply(callback))


STATICS = MethodTable()


@STATICS.add_as("all")
def _all(values: Value) -> Promise:
    return spawn(_wait_all([to_promise(value) for value in iterate(values)]))


@STATICS.add_as("allSettled")
def _all_settled(values: Value) -> Promise:
    return spawn(_wait_settled([to_promise(value) for value in iterate(values)]))


@STATICS.add_as("race")
def _race(values: Value) -> Promise:
    promises = [to_promise(value) for value in iterate(values)]
    return spawn(_wait_first(promises)) if promises else _pending()


@STATICS.add_as("any")
def _any(values: Value) -> Promise:
    return spawn(_wait_any([to_promise(value) for value in iterate(values)]))


@STATICS.add_as("resolve")
def _resolve(value: Value = undefined) -> Promise:
    return to_promise(value)


@STATICS.add_as("reject")
def _reject(reason: Value = undefined) -> Promise:
    promise = _pending()
    promise.reject(reason)
    return promise


@STATICS.add_as("withResolvers")
def _with_resolvers() -> dict[str, Value]:
    promise = _pending()
    return {"promise": promise, "resolve": promise.resolve, "reject": promise.reject}


async def _wait_all(promises: list[Promise]) -> list[Value]:
    futures = [promise.future for promise in promises]
    if futures:
        done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_EXCEPTION)
        _raise_first(future for future in futures if future in done)
    return [future.result() for future in futures]


def _raise_first(futures: Any) -> None:
    for future in futures:
        future.result()


async def _wait_settled(promises: list[Promise]) -> list[Value]:
    futures = [promise.future for promise in promises]
    if futures:
        await asyncio.wait(futures)
    return [_outcome(promise) for promise in promises]


def _outcome(promise: Promise) -> dict[str, Value]:
    status, value = promise.take_outcome()
    return {"status": status, "value" if status == "fulfilled" else "reason": value}


async def _wait_first(promises: list[Promise]) -> Value:
    futures = [promise.future for promise in promises]
    done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    return next(future for future in futures if future in done).result()


async def _wait_any(promises: list[Promise]) -> Value:
    waiting = {promise.future for promise in promises}
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for promise in promises:
            if promise.future in done and promise.take_outcome()[0] == "fulfilled":
                return promise.future.result()
    raise AggregateErrorValue([promise.state[1] for promise in promises], "All promises were rejected")


PROMISE = Constructor("Promise", _promise, None, holder(Promise), STATICS)
