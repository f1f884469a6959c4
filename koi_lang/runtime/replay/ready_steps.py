"""The steps of one run that its event loop is to carry out at once, counted where they are scheduled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any


class ReadySteps:
    """What of a run an event loop has been told to do, and has not done yet; timers and sockets do not count.

    It is asked whether it is empty, so that "nothing more follows from what happened last" is a fact of one run,
    whatever else goes on in its event loop.
    """

    def __init__(self) -> None:
        self._steps: set[asyncio.Handle] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done, but for the step that is being done."""
        if self._steps:
            self._steps = {step for step in self._steps if not step.cancelled()}
        return not self._steps

    def schedule(self, loop_call_soon: Callable[..., asyncio.Handle], step: _Step, context: Context) -> asyncio.Handle:
        """Have a step done soon, and count it until then."""
        handle = step.handle = loop_call_soon(step, context=context)
        self._steps.add(handle)
        return handle

    def forget(self, handle: asyncio.Handle | None) -> None:
        """A step is being done."""
        if handle is not None:
            self._steps.discard(handle)

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count what the current code, and all that it starts, schedules on the running event loop."""
        loop = asyncio.get_running_loop()
        token = _current.set(self)
        call_soon = _CallSoon.of(loop)
        try:
            yield
        finally:
            call_soon.leave(loop)
            _current.reset(token)


_current: ContextVar[ReadySteps | None] = ContextVar("koi_ready_steps", default=None)


class _Step:
    """A callback that is no longer ready once it is called."""

    __slots__ = ("_args", "_callback", "_steps", "handle")

    def __init__(self, steps: ReadySteps, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._steps, self._callback, self._args = steps, callback, args
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        self._steps.forget(self.handle)
        self._callback(*self._args)

    def __repr__(self) -> str:
        return repr(self._callback)


class _CallSoon:
    """Stands in for `call_soon` of an event loop while runs are counted on it.

    Every step of a task, and every callback of a future, is scheduled by way of it, on any event loop.
    """

    def __init__(self, call_soon: Callable[..., asyncio.Handle]) -> None:
        self._call_soon = call_soon
        self._users = 0

    def __call__(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        own = copy_context() if context is None else context
        steps = own.get(_current)
        if steps is None:
            return self._call_soon(callback, *args, context=own)
        return steps.schedule(self._call_soon, _Step(steps, callback, args), own)

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> _CallSoon:
        """That of an event loop, with one more user."""
        found = loop.call_soon
        own = found if isinstance(found, _CallSoon) else _CallSoon(found)
        vars(loop)["call_soon"] = own
        own._users += 1
        return own

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """One user less; behind the last one the event loop is as it was."""
        self._users -= 1
        if self._users == 0 and vars(loop).get("call_soon") is self:
            del vars(loop)["call_soon"]
