"""The time that programs see: that of the machine, unless the surroundings of a run have another one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar

_clock: ContextVar[Callable[[], float] | None] = ContextVar("koi_clock", default=None)


def use_clock(clock: Callable[[], float]) -> None:
    """Let `clock` (seconds since 1970) say the time in this context and in everything started from it."""
    _clock.set(clock)


def wall_ms() -> int:
    """Milliseconds since 1970."""
    clock = _clock.get()
    return time.time_ns() // 1_000_000 if clock is None else int(clock() * 1000)


def steady_ms() -> float:
    """Milliseconds that only grow."""
    clock = _clock.get()
    return (time.perf_counter() if clock is None else clock()) * 1000
