"""How many steps of one run its event loop has been told to take at once, counted where they are scheduled."""

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

    Attributes:
        steps: how many there are.
        task: whose step is being done, where it is counted and one of a task.
    """

    __slots__ = ("steps", "task")

    def __init__(self) -> None:
        self.steps = 0
        self.task: object = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done, but for the step that is being done."""
        return not self.steps

    def must_wait(self) -> bool:
        """Whether something would happen before the current task goes on, if that waited until the run is idle.

        That is so while steps are ready; while a task takes its first steps within a step of another one, which goes
        on when it waits; for a task that is to be cancelled; and where nobody counts.
        """
        if self.steps or self.task is None or _current.get() is not self:
            return True
        task = asyncio.current_task()
        return task is not self.task or task is None or task.cancelling() > 0

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count what the current code, and all that it starts, schedules on the running event loop."""
        loop = asyncio.get_running_loop()
        token = _current.set(self)
        tracker = _Tracker.of(loop)
        try:
            yield
        finally:
            tracker.leave(loop)
            _current.reset(token)


_current: ContextVar[ReadySteps | None] = ContextVar("koi_ready_steps", default=None)


class _Step:
    """A callback that is no longer ready once it is called or cancelled; its own handle, as event loops give one."""

    __slots__ = ("_args", "_callback", "_handle", "_is_ready", "_steps")

    def __init__(self, steps: ReadySteps, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._steps, self._callback, self._args = steps, callback, args
        self._is_ready = True
        self._handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        steps = self._steps
        self._is_ready, self._handle = False, None
        steps.steps -= 1
        # The callbacks by which an event loop takes the next step of a task are methods of it.
        steps.task = getattr(self._callback, "__self__", None)
        try:
            self._callback(*self._args)
        finally:
            steps.task = None

    def __repr__(self) -> str:
        return repr(self._callback)

    def schedule(self, call_soon: Callable[..., asyncio.Handle], context: Context) -> _Step:
        """Have it called soon, and count it until then."""
        self._steps.steps += 1
        self._handle = call_soon(self, context=context)
        return self

    def cancel(self) -> None:
        """Do not call it any more."""
        if self._is_ready:
            self._is_ready = False
            self._steps.steps -= 1
        if self._handle is not None:
            self._handle.cancel()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._handle is not None and self._handle.cancelled()


class _Tracker:
    """Stands in for `call_soon` of an event loop while steps are counted on it.

    Every step of a task, and every callback of a future, is scheduled by way of it, on any event loop.
    """

    def __init__(self, call_soon: Callable[..., asyncio.Handle]) -> None:
        self._users = 0

        def track(callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
            own = copy_context() if context is None else context
            steps = own.get(_current)
            if steps is None:
                return call_soon(callback, *args, context=own)
            return _Step(steps, callback, args).schedule(call_soon, own)

        self._call_soon = track

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> _Tracker:
        """That of an event loop, with one more user."""
        own: _Tracker | None = vars(loop).get(_KEY)
        if own is None:
            own = vars(loop)[_KEY] = _Tracker(loop.call_soon)
            vars(loop)["call_soon"] = own._call_soon
        own._users += 1
        return own

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """One user less; behind the last one the event loop is as it was."""
        self._users -= 1
        if self._users == 0 and vars(loop).pop(_KEY, None) is not None and loop.call_soon is self._call_soon:
            del vars(loop)["call_soon"]


_KEY = "_koi_step_tracker"
