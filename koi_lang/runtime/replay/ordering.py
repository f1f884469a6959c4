"""What happens at moments that the clock decides, one after the other: the order in which it happens is kept.

Each has its slot when all that follows from the one before has happened. So what a program does depends on that order
and not on how fast things are, and a run that goes on later comes to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context

from koi_lang.runtime.replay.location import Path
from koi_lang.runtime.replay.ready_steps import ReadySteps

# What takes a slot: an action of a playbook begins, something ends, a timer fires, something takes too long, something
# that had begun and is in doubt is met.
BEGIN, END, FIRED, LATE, DOUBT = "begin", "end", "fired", "late", "doubt"
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
        ready: what the run has to do at once, counted while it is open.
        given_up: how often something had its slot though what came before it was not asked for.
    """

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
        """While something that has a slot is done again, do not give up what comes after it."""
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
