"""A limit for the time that a thread may compute for one call."""

from __future__ import annotations

import time
from collections.abc import Callable

Tick = Callable[[], None]


class TimeOverError(Exception):
    """The time for a call is over."""


def tick_for(stop: Callable[[], None], most_s: float) -> Tick:
    """A function to call now and then in this thread: it raises TimeOverError when its time is over, or as `stop` does.

    Args:
        most_s: seconds of this thread on the processor, from now on.
    """
    end_s = time.thread_time() + most_s

    def tick() -> None:
        stop()
        if time.thread_time() > end_s:
            raise TimeOverError

    return tick
