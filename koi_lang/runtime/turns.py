"""What happens at moments that the clock decides, one after the other: the order in which it happens is kept.

Each has its turn when all that follows from the one before has happened. So what a program does depends on that order
and not on how fast things are, and a run that goes on later comes to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from koi_lang.runtime.paths import Path

# What takes a turn: an action of a playbook begins, something ends, a timer fires, something takes too long.
BEGIN, END, FIRED, LATE = "begin", "end", "fired", "late"
# Turns of the event loop: after which the next one has its turn although other work goes on, and after which one that
# nobody asks for is no longer waited for.
BUSY, GIVEN_UP = 200, 400
# What then lies between two looks, while one before is being done again.
PAUSE_S = 0.002
Turn = tuple[str, Path]


class Turns:
    """Those of a run that goes on come in their old order, however fast they are this time; new ones as they come.

    Args:
        order: of the earlier parts of the run.
    """

    def __init__(self, order: Sequence[Turn] = ()) -> None:
        self._position = {turn: position for position, turn in enumerate(order)}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._gone: set[int] = set()
        self._next = self._quiet = self._held = 0
        self._last = len(order) - 1
        self._watching = False

    async def take(self, kind: str, path: Path) -> None:
        """Wait until it is the turn of something; that is now when nothing else is to be done."""
        position = self._position.get((kind, path))
        if position is None:
            position = self._last = self._last + 1
        elif position < self._next:
            return
        loop = asyncio.get_running_loop()
        self._pass_over_gone()
        if position == self._next and not self._waiting and _is_idle(loop):
            self._next += 1
            return
        future = self._waiting[position] = loop.create_future()
        self._quiet = 0
        if not self._watching:
            self._watching = True
            loop.call_soon(self._watch)
        try:
            await future
        finally:
            self._leave(position)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do not give up what is not asked for yet: something that comes before it is being done again."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _leave(self, position: int) -> None:
        """One that is ended while it waits gives its turn away."""
        if self._waiting.pop(position, None) is not None:
            self._gone.add(position)

    def _pass_over_gone(self) -> None:
        while self._next in self._gone:
            self._gone.remove(self._next)
            self._next += 1

    def _watch(self) -> None:
        """One turn of the event loop: count how long nothing has happened, and go on when that is long enough."""
        loop = asyncio.get_running_loop()
        self._quiet += 1
        self._pass_over_gone()
        if self._next in self._waiting:
            if _is_idle(loop) or self._quiet > BUSY:
                self._deliver(self._next)
        elif self._quiet > GIVEN_UP and self._waiting and not self._held:
            self._deliver(min(self._waiting))
        self._watching = bool(self._waiting)
        if self._watching and self._quiet > GIVEN_UP:
            loop.call_later(PAUSE_S, self._watch)
        elif self._watching:
            loop.call_soon(self._watch)

    def _deliver(self, position: int) -> None:
        self._next, self._quiet = position + 1, 0
        future = self._waiting.pop(position)
        if not future.done():
            future.set_result(None)


def _is_idle(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether nothing but the current callback is to be done at once; a loop that does not tell counts as idle."""
    ready = getattr(loop, "_ready", ())
    return all(getattr(getattr(handle, "_callback", None), "__func__", None) is Turns._watch for handle in ready)
