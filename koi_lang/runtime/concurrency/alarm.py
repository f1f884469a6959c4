"""The alarms by which code that computes is interrupted: the timer of the process, and what they have in common."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Hashable
from math import inf
from time import monotonic
from types import FrameType
from typing import Protocol

# What lies between two calls of whoever is not done.
PAUSE_S = 0.02
Ring = Callable[[FrameType | None], None]


class Alarm(Protocol):
    """Rings for each owner from a moment on, again and again until that releases it."""

    def set(self, owner: Hashable, moment: float) -> None:
        """Have it ring from a moment of `monotonic` on; infinity is not yet."""

    def release(self, owner: Hashable) -> None:
        """Forget the moment of an owner."""


class SignalAlarm:
    """The handler of SIGALRM: from the first of some moments on it calls a function again and again.

    Args:
        ring: is called in the main thread with the frame of the code that is running there, which ends with the
            exception that it raises.
        rest: is called there when nobody's moment is to come any more.
    """

    def __init__(self, ring: Ring, rest: Callable[[], object]) -> None:
        self._ring, self._rest = ring, rest
        self._moments: dict[Hashable, float] = {}

    def set(self, owner: Hashable, moment: float) -> None:
        """Have it ring from a moment of `monotonic` on, until it is released; infinity is not yet."""
        self._moments[owner] = moment
        self._schedule()

    def release(self, owner: Hashable) -> None:
        """Forget the moment of an owner; without any the signal does what it did before."""
        self._moments.pop(owner, None)
        self._schedule()
        if not self._moments:
            self._rest()
        if not self._moments and self._is_set():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Set the next alarm, and ring."""
        self._schedule()
        self._ring(frame)

    def _schedule(self) -> None:
        if self._is_set():
            first = min(self._moments.values(), default=inf)
            signal.setitimer(signal.ITIMER_REAL, 0 if first == inf else max(first - monotonic(), PAUSE_S))

    def _is_set(self) -> bool:
        """Whether the signal is still ours: a module of Python may have taken it."""
        known: object = signal.getsignal(signal.SIGALRM)
        return known is self


def signal_alarm(ring: Ring, rest: Callable[[], object]) -> SignalAlarm | None:
    """The alarm of the main thread.

    None in other threads, where somebody else uses the timer, and on Windows, which has no such timer.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return None
    known = signal.getsignal(signal.SIGALRM)
    if isinstance(known, SignalAlarm):
        return known
    if known is not signal.SIG_DFL or any(signal.getitimer(signal.ITIMER_REAL)):
        return None
    alarm = SignalAlarm(ring, rest)
    signal.signal(signal.SIGALRM, alarm)
    return alarm
