"""The completion order of timed events, one after the other, recorded for replay.

Each has its slot when all that follows from the one before has happened. So what a program does depends on that order
and not on how fast things are, and a run that goes on later comes to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any

from koi_lang.runtime.replay.location import Path

# What takes a slot: an action of a playbook begins, something ends, a timer fires, something takes too long, something
# that had begun and is in doubt is met.
BEGIN = "begin"
END = "end"
FIRED = "fired"
LATE = "late"
DOUBT = "doubt"
# Turns of the event loop: after which the next one has its slot although other work goes on, and after which one that
# nobody asks for is no longer waited for.
BUSY, GIVEN_UP = 200, 400
# What then lies between two looks, while one before is being done again.
PAUSE_S = 0.002
# So many in a row have their slot at once, before one waits so that the event loop can do something else.
AT_ONCE = 50
Slot = tuple[str, Path]


class CompletionOrder:
    """Those of a run that goes on come in their old order, however fast they are this time; new ones as they come.

    Args:
        order: of the earlier parts of the run.

    Attributes:
        carry_out: performs the effect of a path, where another order than the usual one is wanted for its time.
        ready: what the run has to do at once, counted while it is open.
        given_up: how often something had its slot though what came before it was not asked for.
    """

    carry_out: Callable[[Path, Callable[[], Awaitable[Any]]], Awaitable[Any]] | None = None

    def __init__(self, order: Sequence[Slot] = ()) -> None:
        self.ready = ReadySteps()
        self._position: dict[Slot, int] = {}
        for slot in order:
            self._position.setdefault(slot, len(self._position))
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._gone: set[int] = set()
        self._next = self._quiet = self._held = self._at_once = self.given_up = 0
        self._last = len(self._position) - 1
        self._watching = False

    async def take_slot(self, kind: str, path: Path) -> None:
        """Wait for the slot of something, and until nothing else is to be done.

        It always waits for that, also when nothing has to be waited for: code around it that goes on meanwhile does so
        in a run that is recorded as in one that recalls what was recorded. Only where nothing would go on meanwhile,
        and its slot is next, it has that at once.
        """
        position = self._position.get((kind, path))
        if position is None:
            position = self._last = self._last + 1
        elif position < self._next:
            return
        if position == self._next and self._at_once < AT_ONCE and not self.ready.must_wait():
            self._at_once += 1
            self._have_slot(position)
            return
        loop = asyncio.get_running_loop()
        future = self._waiting[position] = loop.create_future()
        self._quiet = 0
        if not self._watching:
            self._watching = True
            self._look_soon(loop)
        try:
            await future
        finally:
            self._leave(position)

    def pass_over(self, kind: str, path: Path) -> None:
        """Something has happened that did not have to wait for its slot."""
        position = self._position.get((kind, path), -1)
        if position >= self._next:
            self._gone.add(position)

    @contextmanager
    def held_for(self, kind: str, path: Path) -> Iterator[None]:
        """Hold back later slots while a step with a slot is repeated."""
        is_known = self._position.get((kind, path), -1) >= self._next
        self._held += is_known
        try:
            yield
        finally:
            self._held -= is_known

    def _leave(self, position: int) -> None:
        """One that is ended while it waits gives its slot away."""
        if self._waiting.pop(position, None) is not None:
            self._gone.add(position)

    def _pass_over_gone(self) -> None:
        while self._next in self._gone:
            self._gone.remove(self._next)
            self._next += 1

    def _watch(self) -> None:
        """One turn of the event loop: count how long nothing has happened, and go on when that is long enough."""
        self._quiet, self._at_once = self._quiet + 1, 0
        self._pass_over_gone()
        if self._next in self._waiting:
            if self.ready.is_empty or self._quiet > BUSY:
                self._deliver(self._next)
        elif self._quiet > GIVEN_UP and self._waiting and not self._held:
            self.given_up += 1
            self._deliver(min(self._waiting))
        self._watching = bool(self._waiting)
        if self._watching:
            self._look_soon(asyncio.get_running_loop())

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the next turn of the event loop. This is no step of the run, so it has a context of its own."""
        if self._quiet > GIVEN_UP:
            loop.call_later(PAUSE_S, self._watch, context=Context())
        else:
            loop.call_soon(self._watch, context=Context())

    def _have_slot(self, position: int) -> None:
        self._next, self._quiet = position + 1, 0
        self._pass_over_gone()

    def _deliver(self, position: int) -> None:
        self._have_slot(position)
        future = self._waiting.pop(position)
        if not future.done():
            future.set_result(None)


class ReadySteps:
    """Scheduled callbacks of a run that have not been called yet; timers and sockets do not count.

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
        """Count the callbacks that the current code and its tasks schedule on the running event loop."""
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
        self._steps = steps
        self._callback = callback
        self._args = args
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
