"""Ends a call whose code computes for so long that nobody else in the process is served."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from time import monotonic

from koi_lang.runtime.concurrency.cancellation import scopes_at_work
from koi_lang.service.hosted import HostedSession

# How long code may compute without an `await`, and how often that is looked at.
MOST_S = 10.0
BEAT_S = 0.5
NOTE = f"the call was ended: it computed for {MOST_S:.0f} seconds without an `await`, while everybody else had to wait"


class Watchdog:
    """A thread that sees whether the event loop goes on.

    Args:
        sessions: all that the process has at the time.
        most_s: how long the loop may be held up.
    """

    def __init__(self, sessions: Callable[[], Iterable[HostedSession]], most_s: float = MOST_S) -> None:
        self._sessions, self._most_s = sessions, most_s
        self._loop = asyncio.get_running_loop()
        self._beaten = monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="koi-watchdog")

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """A context in which it looks."""
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat())
            self._thread.start()
            try:
                yield
            finally:
                self._is_over.set()
                beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beaten = monotonic()
            await asyncio.sleep(BEAT_S)

    def _watch(self) -> None:
        while not self._is_over.wait(BEAT_S):
            if monotonic() - self._beaten > self._most_s:
                self._end_what_computes()
                self._beaten = monotonic()  # it gets some time to end

    def _end_what_computes(self) -> None:
        scopes = scopes_at_work(self._loop)
        for session in tuple(self._sessions()):
            call = session.call
            if call is not None and call.scope in scopes:
                call.interrupt(0)
                self._loop.call_soon_threadsafe(session.note, NOTE)
