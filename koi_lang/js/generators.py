"""Generators: what `function*` and `async function*` give, and how loops and `yield*` walk over them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import wraps
from types import GeneratorType
from typing import Any, ClassVar

from koi_lang.js.calling import THIS, VARIADIC, takes_this
from koi_lang.js.errors import TypeErrorValue, thrown
from koi_lang.js.iteration import IteratorValue, iterate
from koi_lang.js.method_tables import Function
from koi_lang.js.promises import settle, spawn
from koi_lang.js.undefined import Value, undefined

_END = object()


class GeneratorLeftError(BaseException):
    """A generator ends where it stands, as `return(value)` asks; no `catch` holds it up, every `finally` runs."""

    def __init__(self, value: Value = undefined) -> None:
        super().__init__()
        self.value = value


def _step(value: Value, done: bool) -> dict[str, Value]:
    return {"value": value, "done": done}


class GeneratorValue(IteratorValue):
    """A generator of Koi around one of Python, to which values are sent.

    The first `yield` of the one of Python stands behind the parameters, so they are computed when it is made.
    """

    __slots__ = ()
    __koi_members__: ClassVar[dict[str, str]] = {
        "next": "next", "return": "leave", "throw": "throw", "toString": "__str__",
    }  # fmt: skip
    _items: GeneratorType[Value, Value, Value]

    def __init__(self, raw: GeneratorType[Value, Value, Value]) -> None:
        super().__init__("Generator", raw)
        next(raw)

    def __iter__(self) -> Iterator[Value]:
        return GeneratorWalk(self)

    @property
    def raw(self) -> GeneratorType[Value, Value, Value]:
        """The generator of Python."""
        return self._items

    def next(self, value: Value = undefined) -> dict[str, Value]:
        """Go on to the next `yield`; the one it stands at gives the value."""
        return self._advance(lambda: self._items.send(value))

    def leave(self, value: Value = undefined) -> dict[str, Value]:
        """End where it stands; one that has not begun runs nothing."""
        if self._items.gi_suspended:
            return self._advance(lambda: self._items.throw(GeneratorLeftError(value)))
        self._check_idle()
        self._items.close()
        return _step(value, True)

    def throw(self, error: Value = undefined) -> dict[str, Value]:
        """Have the `yield` it stands at throw."""
        return self._advance(lambda: self._items.throw(thrown(error)))

    def _advance(self, go: Callable[[], Value]) -> dict[str, Value]:
        self._check_idle()
        is_over = self._items.gi_frame is None
        try:
            return _step(go(), False)
        except StopIteration as end:
            return _step(undefined if is_over else end.value, True)
        except GeneratorLeftError as left:
            return _step(left.value, True)

    def _check_idle(self) -> None:
        if self._items.gi_running:
            raise TypeErrorValue("Generator is already running")


class GeneratorWalk:
    """What a loop walks over a generator with, which ends when the loop is left."""

    __slots__ = ("_generator",)

    def __init__(self, generator: GeneratorValue) -> None:
        self._generator: GeneratorValue | None = generator

    def __iter__(self) -> GeneratorWalk:
        return self

    def __next__(self) -> Value:
        step = _step(undefined, True) if self._generator is None else self._generator.next()
        if step["done"]:
            self._generator = None
            raise StopIteration
        return step["value"]

    def close(self) -> None:
        """End the generator unless it has come to its end. Raises what its `finally` throws."""
        generator, self._generator = self._generator, None
        if generator is not None:
            generator.leave()

    def fail(self, error: BaseException) -> None:
        """End the generator because of an error, which is the one to be told; or leave it where it stands.

        A loop of a generator that nobody asks for more is not left, though Python says so.
        """
        generator, self._generator = self._generator, None
        if generator is not None and not isinstance(error, GeneratorExit):
            with suppress(Exception):
                generator.leave()

    def __del__(self) -> None:
        if self._generator is not None:
            _leave_quietly(self._generator)


def walk(value: Value) -> Iterable[Value]:
    """What a loop walks over, in a file that has generators."""
    items = iterate(value)
    return GeneratorWalk(items) if isinstance(items, GeneratorValue) else items


def end_walk(items: Iterable[Value]) -> None:
    """The loop is left."""
    if type(items) is GeneratorWalk:
        items.close()


def fail_walk(items: Iterable[Value], error: BaseException) -> None:
    """The loop is left with an error."""
    if type(items) is GeneratorWalk:
        items.fail(error)


def _leave_quietly(generator: GeneratorValue) -> None:
    """End a generator; an error in its `finally` is reported as that of a promise that nobody waits for."""
    try:
        generator.leave()
    except Exception as error:
        spawn(_fail(error))


async def _fail(error: Exception) -> None:
    raise error


def delegate(value: Value) -> Iterator[Value]:
    """What `yield*` goes on with: for a generator the one of Python, so that values and errors reach it."""
    return value.raw if isinstance(value, GeneratorValue) else _walk_items(value)


def _walk_items(value: Value) -> Generator[Value, Value, Value]:
    # Values that are sent go nowhere, as lists cannot take them.
    for item in iterate(value):  # noqa: UP028
        yield item
    return undefined


class AsyncGeneratorValue:
    """A generator that may wait, made like `GeneratorValue`. What is asked of it at work waits for its turn."""

    __slots__ = ("_is_over", "_lock", "_raw")
    __koi_members__: ClassVar[dict[str, str]] = {
        "next": "next", "return": "leave", "throw": "throw", "toString": "__str__",
    }  # fmt: skip
    title = "AsyncGenerator"

    def __init__(self, raw: AsyncGenerator[Value, Value]) -> None:
        self._raw = raw
        self._lock = asyncio.Lock()
        self._is_over = False
        self._begin()

    def __str__(self) -> str:
        return "[object AsyncGenerator]"

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        return "Object [AsyncGenerator]", []

    async def next(self, value: Value = undefined) -> dict[str, Value]:
        """Go on to the next `yield`; the one it stands at gives the value."""
        return await self._advance(lambda: self._raw.asend(value))

    async def leave(self, value: Value = undefined) -> dict[str, Value]:
        """End where it stands; one that has not begun runs nothing."""
        return await self._advance(lambda: self._raw.athrow(GeneratorLeftError(value)), GeneratorLeftError(value))

    async def throw(self, error: Value = undefined) -> dict[str, Value]:
        """Have the `yield` it stands at throw."""
        return await self.fail(thrown(error))

    async def fail(self, error: BaseException) -> dict[str, Value]:
        """Have the `yield` it stands at raise an exception."""
        return await self._advance(lambda: self._raw.athrow(error), error)

    async def _advance(self, go: Callable[[], Awaitable[Value]], end: BaseException | None = None) -> dict[str, Value]:
        """One step; where the generator is over, `end` is raised instead."""
        async with self._lock:
            try:
                if not self._is_over:
                    return _step(await go(), False)
                if end is not None:
                    raise end
                return _step(undefined, True)
            except StopAsyncIteration:
                self._is_over = True
                return _step(undefined, True)
            except GeneratorLeftError as left:
                self._is_over = True
                return _step(await settle(left.value), True)
            except BaseException:
                self._is_over = True
                raise

    def _begin(self) -> None:
        """Compute the parameters, which wait for nothing, up to the first `yield` of the generator of Python.

        The event loop is not told of the generator, which it would end when nobody needs it.
        """
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            self._raw.asend(None).send(None)
        except StopIteration:
            pass
        finally:
            sys.set_asyncgen_hooks(*hooks)


class AsyncItems:
    """What `for await` walks over: async generators, asynchronous iterators of Python, and lists whose items wait."""

    def __init__(self, value: Value) -> None:
        self._generator = value if isinstance(value, AsyncGeneratorValue) else None
        self._python = aiter(value) if self._generator is None and hasattr(type(value), "__aiter__") else None
        is_plain = self._generator is None and self._python is None
        self._items: Iterator[Value] = iter(iterate(value)) if is_plain else iter(())

    def __aiter__(self) -> AsyncItems:
        return self

    async def __anext__(self) -> Value:
        if self._generator is not None:
            step = await self._generator.next()
            if step["done"]:
                raise StopAsyncIteration
            return step["value"]
        if self._python is not None:
            return await anext(self._python)
        item = next(self._items, _END)
        if item is _END:
            raise StopAsyncIteration
        return await settle(item)

    async def close(self) -> None:
        """End what is walked over, which does nothing where it has come to its end."""
        if self._generator is not None:
            await self._generator.leave()
        for items, name in ((self._python, "aclose"), (self._items, "close")):
            if (end := getattr(items, name, None)) is not None:
                await settle(end())


class AsyncDelegate:
    """`yield*` of an async generator: a step for each value, with what its own caller sends or throws.

    Attributes:
        value: what to yield, and at the end the value of the whole.
        sent: what the `yield` gave.
        error: what it raised.
    """

    def __init__(self, value: Value) -> None:
        self._generator = value if isinstance(value, AsyncGeneratorValue) else None
        self._items = AsyncItems(value)
        self.value: Value = undefined
        self.sent: Value = undefined
        self.error: BaseException | None = None

    async def advance(self) -> bool:
        """Whether there is another value to yield. Raises what it was left with or is thrown."""
        error, self.error = self.error, None
        if self._generator is None:
            return await self._advance_items(error)
        step = await (self._generator.next(self.sent) if error is None else self._generator.fail(error))
        self.value = step["value"]
        if step["done"] and isinstance(error, GeneratorLeftError):
            raise GeneratorLeftError(self.value)
        return not step["done"]

    async def _advance_items(self, error: BaseException | None) -> bool:
        if error is not None:
            await self._items.close()
            raise error
        try:
            self.value = await anext(self._items)
        except StopAsyncIteration:
            self.value = undefined
            return False
        return True


def generator(f: Function) -> Function:
    """The function that gives a generator, for one of Python whose body it runs."""
    return _making(f, GeneratorValue, "GeneratorFunction")


def async_generator(f: Function) -> Function:
    """The same for a generator that may wait."""
    return _making(f, AsyncGeneratorValue, "AsyncGeneratorFunction")


def _making(f: Any, kind: type, title: str) -> Function:
    code = f.__code__
    least = code.co_argcount - len(f.__defaults__ or ())
    most = None if code.co_flags & VARIADIC else code.co_argcount

    def fit(args: tuple[Value, ...]) -> tuple[Value, ...]:
        return (*args, *(undefined,) * (least - len(args)))[:most]

    if takes_this(f):

        @wraps(f)
        def make(*args: Value, this_object: Value = f.__kwdefaults__[THIS]) -> Value:
            return kind(f(*fit(args), this_object=this_object))
    else:

        @wraps(f)
        def make(*args: Value) -> Value:
            return kind(f(*fit(args)))

    make.__dict__["__koi_kind_of_function__"] = title
    return make
