"""The recursion limit of the process while programs run in it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Programs may recurse some 2,000 calls deep; 8 MB of stack hold twice these frames even where all calls pass through C.
MAX_FRAMES = 7500
_lock = threading.Lock()
# How many runs are open, and the limit before the first of them.
_open_runs, _limit_before = 0, 0


@contextmanager
def deep_calls() -> Iterator[None]:
    """Raise the recursion limit to `MAX_FRAMES` until the last of the runs that are open at a time has ended.

    The limit belongs to the process, and so to whoever has imported a program: it is put back, unless somebody else
    has changed it meanwhile. A limit that is higher already stays.
    """
    global _open_runs, _limit_before
    with _lock:
        if _open_runs == 0:
            _limit_before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(MAX_FRAMES, _limit_before))
        _open_runs += 1
    try:
        yield
    finally:
        with _lock:
            _open_runs -= 1
            if _open_runs == 0 and sys.getrecursionlimit() == MAX_FRAMES:
                sys.setrecursionlimit(_limit_before)
