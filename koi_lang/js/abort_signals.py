"""The globals `AbortController` and `AbortSignal`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from koi_lang.js import timers
from koi_lang.js.calling import apply, describe
from koi_lang.js.conversions import is_number, text
from koi_lang.js.dom_exceptions import abort_error, timeout_error
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue, thrown
from koi_lang.js.iteration import iterate
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.promises import settle, spawn
from koi_lang.js.undefined import Value, undefined

_MAX_DELAY_MS = 2**32 - 1


class AbortSignalValue:
    """What tells an operation that it is not wanted any more: once, with a reason."""

    __slots__ = ("_followers", "_handler", "_listeners", "_reasons")
    __koi_kind__ = "an AbortSignal"
    __koi_members__: ClassVar[dict[str, str]] = {
        "aborted": "is_aborted", "reason": "reason", "onabort": "on_abort",
        "throwIfAborted": "throw_if_aborted", "addEventListener": "add_listener",
        "removeEventListener": "remove_listener", "toString": "__str__",
    }  # fmt: skip

    def __init__(self) -> None:
        self._reasons: list[Value] = []
        self._handler: Value = None
        self._listeners: list[Value] = []
        self._followers: list[Callable[[], None]] = []

    def __str__(self) -> str:
        return "[object AbortSignal]"

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        """How it is shown."""
        return "AbortSignal", [("aborted", self.is_aborted)]

    @property
    def is_aborted(self) -> bool:
        """Whether it has happened."""
        return bool(self._reasons)

    @property
    def reason(self) -> Value:
        """Why; undefined before it has happened."""
        return self._reasons[0] if self._reasons else undefined

    def throw_if_aborted(self) -> Value:
        """Throw the reason where it has happened."""
        if self.is_aborted:
            raise thrown(self.reason)
        return undefined

    @property
    def on_abort(self) -> Value:
        """The one listener that is assigned; null for none."""
        return self._handler

    @on_abort.setter
    def on_abort(self, handler: Value) -> None:
        if callable(handler) and self._handler in self._listeners:
            self._listeners[self._listeners.index(self._handler)] = handler
        elif callable(handler):
            self._listeners.append(handler)
        elif self._handler in self._listeners:
            self._listeners.remove(self._handler)
        self._handler = handler if callable(handler) else None

    def add_listener(self, kind: Value, listener: Value = undefined) -> Value:
        """Call a function when it happens; the same one counts once."""
        if text(kind) == "abort" and callable(listener) and listener not in self._listeners:
            self._listeners.append(listener)
        return undefined

    def remove_listener(self, kind: Value, listener: Value = undefined) -> Value:
        """Do not call it any more."""
        if text(kind) == "abort" and listener in self._listeners:
            self._listeners.remove(listener)
        return undefined

    def follow(self, follower: Callable[[], None]) -> Callable[[], None]:
        """Have a function of the runtime called when it has happened; gives what ends that."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower) if follower in self._followers else None

    async def wait(self) -> None:
        """Wait until it has happened."""
        if not self.is_aborted:
            happened = asyncio.Event()
            self.follow(happened.set)
            await happened.wait()

    def abort(self, reason: Value) -> None:
        """Let it happen; only the first time counts."""
        if self.is_aborted:
            return
        self._reasons.append(abort_error() if reason is undefined else reason)
        listeners, followers = self._listeners, self._followers
        self._listeners, self._followers = [], []
        event = {"type": "abort", "target": self}
        # An error of a listener ends the run like one that nobody waits for; the others are called all the same.
        for listener in listeners:
            spawn(_call(listener, event))
        for follower in followers:
            follower()


async def _call(listener: Value, event: Value) -> None:
    await settle(apply(listener, event))


class AbortControllerValue:
    """What lets the abort of its signal happen."""

    __slots__ = ("_signal",)
    __koi_members__: ClassVar[dict[str, str]] = {"signal": "signal", "abort": "abort", "toString": "__str__"}

    def __init__(self) -> None:
        self._signal = AbortSignalValue()

    def __str__(self) -> str:
        return "[object AbortController]"

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        """How it is shown."""
        return "AbortController", [("signal", self.signal)]

    @property
    def signal(self) -> AbortSignalValue:
        """What operations are given."""
        return self._signal

    def abort(self, reason: Value = undefined) -> Value:
        """Tell everybody who was given the signal."""
        self.signal.abort(reason)
        return undefined


STATICS = MethodTable()


@STATICS.add_as("abort")
def _aborted_signal(reason: Value = undefined) -> AbortSignalValue:
    signal = AbortSignalValue()
    signal.abort(reason)
    return signal


@STATICS.add_as("timeout")
def _timeout_signal(delay_ms: Value = undefined) -> AbortSignalValue:
    """A signal that is aborted by the clock; the program does not wait for that."""
    if not is_number(delay_ms):
        raise TypeErrorValue(f'The "delay" argument must be of type number. Received {describe(delay_ms)}')
    if not 0 <= delay_ms <= _MAX_DELAY_MS:
        raise RangeErrorValue(
            f'The value of "delay" is out of range. It must be >= 0 && <= 4294967295. Received {describe(delay_ms)}'
        )
    signal = AbortSignalValue()
    timers.set_timeout(lambda: signal.abort(timeout_error()), delay_ms).unref()
    return signal


@STATICS.add_as("any")
def _any_signal(signals: Value = undefined) -> AbortSignalValue:
    """A signal that is aborted with the first one of several, for its reason."""
    given = list(iterate(signals))
    for at, each in enumerate(given):
        if not isinstance(each, AbortSignalValue):
            raise TypeErrorValue(
                f'The "signals[{at}]" argument must be an instance of AbortSignal. Received {describe(each)}'
            )
    made = AbortSignalValue()
    first = next((each for each in given if each.is_aborted), None)
    if first is not None:
        made.abort(first.reason)
        return made
    for each in given:
        _pass_on(each, made)
    return made


def _pass_on(source: AbortSignalValue, target: AbortSignalValue) -> None:
    source.follow(lambda: target.abort(source.reason))


def _refuse(*_: Value) -> Value:
    raise TypeErrorValue("Illegal constructor")


ABORTSIGNAL = Constructor("AbortSignal", _refuse, None, holder(AbortSignalValue), STATICS)
ABORTCONTROLLER = Constructor("AbortController", AbortControllerValue, None, holder(AbortControllerValue))
