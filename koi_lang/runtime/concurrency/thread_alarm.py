"""Alarms for threads in which no signals arrive: another thread rings."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Hashable
from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

# What lies between two rings for an owner that has not released its alarm.
PAUSE_S = 0.02
# Longer waits are more than some systems take.
MAX_SLEEP_S = 3600.0


class ThreadAlarm:
    """A thread that calls a function for each owner whose moment has come, again and again until it is released.

    It lives while a moment is to come. Moments can be set in handlers of signals: nothing here waits for a lock.

    Args:
        ring: is called in the thread, with the owner.
        rest: is called there when nobody's moment has come any more.
    """

    def __init__(self, ring: Callable[[Any], object], rest: Callable[[], object]) -> None:
        self._ring, self._rest = ring, rest
        self._moments: dict[Hashable, float] = {}
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._sleeps_until = inf
        self._is_running = _thread.allocate_lock()

    def set(self, owner: Hashable, moment: float) -> None:
        """Have it ring from a moment of `monotonic` on; infinity is not yet."""
        if moment == inf:
            return
        self._moments[owner] = moment
        if moment < self._sleeps_until:
            self._wakeups.put(None)
        if self._is_running.acquire(blocking=False):
            _thread.start_new_thread(self._run, ())

    def release(self, owner: Hashable) -> None:
        """Forget the moment of an owner; the thread notices when it wakes up."""
        self._moments.pop(owner, None)

    def _run(self) -> None:
        is_needed = True
        while is_needed:
            while self._moments:
                self._ring_or_sleep()
            self._rest()
            self._is_running.release()
            # Of a moment that was set just now nobody else has taken care.
            is_needed = bool(self._moments) and self._is_running.acquire(blocking=False)

    def _ring_or_sleep(self) -> None:
        due = [owner for owner, moment in list(self._moments.items()) if moment <= monotonic()]
        for owner in due:
            self._ring(owner)
        if due:
            sleep(PAUSE_S)
            return
        self._rest()
        # Until the first moment, or an earlier one that is set meanwhile.
        self._sleeps_until = inf
        self._sleeps_until = first = min(list(self._moments.values()), default=-inf)
        with suppress(Empty):
            self._wakeups.get(timeout=min(max(0.0, first - monotonic()), MAX_SLEEP_S))
