"""An event loop whose time passes only when everything sleeps, and then at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from selectors import DefaultSelector, SelectorKey
from time import monotonic
from typing import Any, TypeVar, TypeVarTuple, Unpack

# How long nothing may happen, in real seconds, before a loop that waits for nothing known is said to wait for ever.
GRACE_S = 1.0
# How the names of threads begin that the loop hands work to; they stay when it is done.
EXECUTOR = "asyncio_"
Made = TypeVar("Made")
Given = TypeVarTuple("Given")
Ready = list[tuple[SelectorKey, int]]


class Overtime(KeyboardInterrupt):
    """A case takes too long; like an interrupt it ends the event loop at once, wherever that is."""


class _Sleeping(DefaultSelector):
    """A selector that jumps ahead in time where nothing outside of the process is waited for.

    Attributes:
        now: seconds that the loop has seen pass.
        own: how many files belong to the loop itself.
        working: how much is under way in threads.
        stalled: called when nothing can ever happen any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.own = self.working = 0
        self._threads = frozenset(threading.enumerate())
        self.stalled: Callable[[], object] | None = None

    def select(self, timeout: float | None = None) -> Ready:
        """The ready events; without any, time has passed."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.is_awaiting_others():
            return self._wait(timeout)
        if timeout is None:
            return self._wait_in_vain()
        self.now += timeout
        return []

    def is_awaiting_others(self) -> bool:
        """Whether files, or threads other than those that wait for work, may wake the loop."""
        if self.working or len(self.get_map()) > self.own:
            return True
        threads = [thread for thread in threading.enumerate() if thread not in self._threads]
        return not all(thread.name.startswith(EXECUTOR) for thread in threads)

    def _wait(self, timeout: float | None) -> Ready:
        begin = monotonic()
        ready = super().select(timeout)
        self.now += monotonic() - begin if ready or timeout is None else timeout
        return ready

    def _wait_in_vain(self) -> Ready:
        ready = super().select(GRACE_S)
        if not ready and self.stalled is not None:
            self.stalled()
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own: sleeping takes no time, while files and threads are waited for as usual."""

    def __init__(self) -> None:
        self._sleeping = _Sleeping()
        super().__init__(self._sleeping)
        self._sleeping.own = len(self._sleeping.get_map())
        self.late: Callable[[], object] | None = None

    def time(self) -> float:
        """Seconds since the loop was made, as its tasks see them."""
        return self._sleeping.now

    @property
    def is_awaiting_others(self) -> bool:
        """Whether threads, or files such as pipes and sockets, may wake the loop."""
        return self._sleeping.is_awaiting_others()

    def when_stalled(self, tell: Callable[[], object]) -> None:
        """Have something called when all tasks wait and nothing can ever wake them."""
        self._sleeping.stalled = tell

    def when_late(self, tell: Callable[[], object]) -> None:
        """Have something called between two steps when `end_soon` is."""
        self.late = tell

    def end_soon(self) -> None:
        """Tell that the time is up, as soon as the step that is under way has ended; for handlers of signals."""
        if self.late is not None:
            self.call_soon_threadsafe(self.late)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Given]], Made], *args: *Given
    ) -> asyncio.Future[Made]:
        """Work in a thread, which is waited for in real time."""
        future = super().run_in_executor(executor, func, *args)
        self._sleeping.working += 1
        future.add_done_callback(self._end_work)
        return future

    def _end_work(self, _: asyncio.Future[Any]) -> None:
        self._sleeping.working -= 1
