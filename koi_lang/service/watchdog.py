"""Warns of a call whose code computes without an `await`, and ends it before everybody else has waited for long."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from types import FrameType
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.runtime.concurrency.cancellation import scopes_of
from koi_lang.service.hosted import HostedSession
from koi_lang.sessions.held_call import HeldCall

# CPU time that one step of a call may take: what its code does between two awaits.
MAX_STEP_S = 10.0
# Shares of that time: before a call is warned of, between two beats of the loop, and between two looks at a late loop.
WARNING_SHARE = 0.2
BEAT_SHARE = 0.05
SAMPLE_SHARE = 0.005
# Code that blocks the loop without computing, such as `time.sleep`, is ended after so many times as long.
BLOCKED_FACTOR = 6
# How long the loop's thread releases the interpreter's lock, once in a beat of CPU time.
YIELD_S = 0.001
HELP = (
    "Have its loops await something now and then, such as "
    "`await new Promise(resolve => setTimeout(resolve, 0))`, or leave the work to a command."
)


@dataclass(slots=True)
class LoopStep:
    """A step of a task that holds the event loop.

    Attributes:
        started: CPU time of the loop's thread at the first sample, in seconds.
        sampled: when the last sample was taken.
        held_s: how long the step was seen; a pause of the whole process does not count.
    """

    task: asyncio.Task[Any]
    started: float
    sampled: float
    held_s: float = 0.0


class Watchdog:
    """A thread that measures the steps of calls while the event loop is late.

    A step counts from the first sample that shows its task at work until the loop turns to something else. So a call
    pays for its own code alone, however late others have made the loop.

    Args:
        sessions: all sessions of the process.
        note: takes a line for the operator, in any thread.
        max_s: the most CPU time of one step.
    """

    def __init__(
        self, sessions: Callable[[], Iterable[HostedSession]], note: Callable[[str], None], max_s: float = MAX_STEP_S
    ) -> None:
        self._sessions = sessions
        self._note = note
        self._max_s = max_s
        self._loop = asyncio.get_running_loop()
        self._beaten, self._lag_s = monotonic(), 0.0
        self._warned: HeldCall | None = None  # the last one
        self._is_over = threading.Event()
        self._cpu_time: Callable[[], float] = monotonic  # where a system does not tell the CPU time of another thread
        if hasattr(time, "pthread_getcpuclockid"):
            self._cpu_time = partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
        self._thread = threading.Thread(target=self._watch, daemon=True, name="koi-watchdog")

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """A context in which steps are measured."""
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat())
            self._thread.start()
            try:
                with _yielding(self._max_s * BEAT_SHARE):
                    yield
            finally:
                self._is_over.set()
                beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beaten = monotonic()
            await asyncio.sleep(self._max_s * BEAT_SHARE)
            self._lag_s = monotonic() - self._beaten - self._max_s * BEAT_SHARE

    @property
    def lag_s(self) -> float:
        """How late the event loop is, or was at its last beat, in seconds."""
        return max(0.0, self._lag_s, monotonic() - self._beaten - self._max_s * BEAT_SHARE)

    def _watch(self) -> None:
        step: LoopStep | None = None
        pause_s = beat_s = self._max_s * BEAT_SHARE
        while not self._is_over.wait(pause_s):
            is_late = monotonic() - self._beaten > 2 * beat_s
            pause_s = self._max_s * SAMPLE_SHARE if is_late else beat_s
            task = asyncio.current_task(self._loop) if is_late else None
            if step is not None and step.task is task:
                self._measure(step)
            else:
                step = None if task is None else LoopStep(task, self._cpu_time(), monotonic())

    def _measure(self, step: LoopStep) -> None:
        """Add a sample to a step. Warns of its call, or ends it, once it has taken too long."""
        now = monotonic()
        step.held_s += min(now - step.sampled, 2 * self._max_s * SAMPLE_SHARE)
        step.sampled = now
        computed_s = self._cpu_time() - step.started
        is_over = computed_s > self._max_s or step.held_s > self._max_s * BLOCKED_FACTOR
        if not is_over and computed_s < self._max_s * WARNING_SHARE:
            return
        scopes = scopes_of(step.task)
        for session in tuple(self._sessions()):
            call = session.call
            if call is None or call.scope not in scopes:
                continue
            if is_over and call.end_error is None:
                did = f"computed for {computed_s:.1f}" if computed_s > self._max_s else f"blocked for {step.held_s:.1f}"
                error = KoiError(f"`{call.name}` was ended: it {did} s without an `await`", help=HELP)
                self._report(session, error.message)
                call.interrupt(0, error)
            elif call.end_error is None and call is not self._warned:
                self._warned = call
                self._report(session, f"`{call.name}` computes for {computed_s:.1f} s without an `await`")

    def _report(self, session: HostedSession, line: str) -> None:
        """Log a line for the operator at once, and in the session when the loop is free."""
        self._note(f"session `{session.id}`: {line}")
        self._loop.call_soon_threadsafe(session.note, line)


@contextmanager
def _yielding(interval_s: float) -> Iterator[None]:
    """A context in which the main thread releases the interpreter's lock after each interval of CPU time.

    A search with a regular expression keeps the lock to its end, so without this no other thread would see that it
    does not end. It does handle signals meanwhile. Does nothing in other threads, and on Windows.
    """
    if not hasattr(signal, "SIGVTALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def release(number: int, frame: FrameType | None) -> None:
        time.sleep(YIELD_S)

    before = signal.signal(signal.SIGVTALRM, release)
    signal.setitimer(signal.ITIMER_VIRTUAL, interval_s, interval_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
