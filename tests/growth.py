"""How much work there is, and how it grows: counted, not timed, so that a busy machine changes nothing."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from koi_lang.system import resources

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


def functions_between(
    work: Callable[[], object], begins: Callable[[FrameType], bool], ends: Callable[[FrameType], bool]
) -> set[tuple[str, str]]:
    """The functions of the package, by file, that are called from one frame on to another that comes later.

    Comprehensions and the bodies of modules and classes are none.
    """
    found, is_on, is_over, root = set[tuple[str, str]](), False, False, str(resources.PACKAGE)

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal is_on, is_over
        if event != "call":
            return
        is_on, is_over = is_on or begins(frame), is_over or (is_on and ends(frame))
        code = frame.f_code
        is_function = "<" not in code.co_name and code.co_flags & inspect.CO_OPTIMIZED
        if is_on and not is_over and is_function and code.co_filename.startswith(root):
            found.add((code.co_filename, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found
