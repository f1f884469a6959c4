"""How work grows: counted, not timed, so that a busy machine changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# Twice as much of something may take this many times the work: a little more than twice, and far less than four times.
MOST_GROWTH = 2.6


def calls_in(work: Callable[[], Any]) -> int:
    """How many functions are called while something is done, those of C included."""
    count = 0

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def growth(work: Callable[[int], Callable[[], Any]], n: int) -> float:
    """How many times as many functions are called for 2 n as for n.

    Args:
        work: prepares so much of something; only what it gives is counted.
    """
    first, second = (calls_in(work(many)) for many in (n, 2 * n))
    return second / first
