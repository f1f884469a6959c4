"""Callbacks to calls after some time, in the scope that asked for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import ClassVar

from koi_lang.js.calling import apply, describe
from koi_lang.js.conversions import number
from koi_lang.js.environment import Firing, current_environment
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import MethodTable
from koi_lang.js.promises import settle, spawn
from koi_lang.js.task_scope import current_scope
from koi_lang.js.undefined import Value, undefined

TIMERS = MethodTable()
_MAX_DELAY_MS = 2**31 - 1


class Timer:
    """What `setTimeout` and `setInterval` return."""

    __slots__ = ("_args", "_callback", "_context", "_delay_s", "_handle", "_over", "_repeat", "_scope")
    __koi_members__: ClassVar[dict[str, str]] = {"ref": "ref", "unref": "unref", "hasRef": "has_ref"}

    def __init__(self, callback: Value, delay_ms: Value, args: tuple[Value, ...], repeat: bool) -> None:
        if not callable(callback):
            raise TypeErrorValue(f"a timer needs a function, not {describe(callback)}")
        delay = number(delay_ms)
        self._callback = callback
        self._args = args
        self._repeat = repeat
        self._delay_s = (delay if 1 <= delay <= _MAX_DELAY_MS else 1) / 1000
        self._over = False
        self._scope = current_scope()
        self._scope.hold(self)
        # Its own branch: when it fires does not change how others count.
        self._context = current_environment().fork_context()
        self._schedule(self._context.run(_next_firing))

    def clear(self) -> None:
        """Do not call any more."""
        self._over = True
        self._handle.cancel()
        self._scope.release(self)

    def ref(self) -> Timer:
        """Make the program wait for this timer again."""
        return self._wait(True)

    def unref(self) -> Timer:
        """Let the program end before this timer."""
        return self._wait(False)

    def has_ref(self) -> bool:
        """Whether the program waits for this timer."""
        return self._scope.holds(self)

    def _wait(self, waits: bool) -> Timer:
        if not self._over:
            self._scope.hold(self, waits)
        return self

    def _schedule(self, firing: Firing) -> None:
        self._handle: asyncio.Handle | asyncio.Task[Value]
        loop = asyncio.get_running_loop()
        if firing.skips_clock():
            self._handle = loop.call_soon(self._is_due, firing, context=self._context)
        else:
            self._handle = loop.call_later(self._delay_s, self._is_due, firing, context=self._context)

    def _is_due(self, firing: Firing) -> None:
        turn = firing.turn()
        if turn is None:
            self._fire(firing)
        else:
            # A copy, since this is called from within the context.
            self._handle = self._scope.start(self._fire_in_turn(turn, firing), self._context.copy())

    async def _fire_in_turn(self, turn: Awaitable[None], firing: Firing) -> None:
        await turn
        self._fire(firing)

    def _fire(self, firing: Firing) -> None:
        firing.record()
        spawn(self._call())
        if not self._repeat:
            self.clear()
        elif not self._over:
            self._schedule(_next_firing())

    async def _call(self) -> None:
        await settle(apply(self._callback, *self._args))


def _next_firing() -> Firing:
    return current_environment().next_firing()


@TIMERS.add_as("setTimeout")
def set_timeout(callback: Value, delay_ms: Value = 1, *args: Value) -> Timer:
    """Call once, after at least 1 ms."""
    return Timer(callback, delay_ms, args, repeat=False)


@TIMERS.add_as("setInterval")
def set_interval(callback: Value, delay_ms: Value = 1, *args: Value) -> Timer:
    """Call again and again; a call does not wait for the one before."""
    return Timer(callback, delay_ms, args, repeat=True)


@TIMERS.add_as("setImmediate")
def set_immediate(callback: Value, *args: Value) -> Timer:
    """Call as soon as what is ready now has run."""
    return Timer(callback, 0, args, repeat=False)


@TIMERS.add_as("clearTimeout", "clearInterval", "clearImmediate")
def clear(timer: Value = undefined) -> Value:
    """Stop a timer; anything else is ignored."""
    if isinstance(timer, Timer):
        timer.clear()
    return undefined


@TIMERS.add_as("queueMicrotask")
def queue_microtask(callback: Value) -> Value:
    """Call in the next turn of the event loop."""
    spawn(_soon(callback))
    return undefined


async def _soon(callback: Value) -> None:
    await asyncio.sleep(0)
    await settle(apply(callback))
