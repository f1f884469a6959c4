"""Interrupts of code that computes, by another thread: at the very place that was looked at, or not at all."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Collection, MutableMapping
from itertools import repeat
from operator import itemgetter
from types import CodeType, FrameType
from typing import Any

# Tools of `sys.monitoring` that no others are known to be, in the order in which they are tried.
TOOLS = (4, 3)
monitoring: Any = getattr(sys, "monitoring", None)


class LineEvents:
    """Has code call a function in its own thread before lines and turns of loops, by `sys.monitoring` of Python 3.12.

    The function sees its caller's frame as the handler of a signal does, and what it raises is raised there.
    """

    def __init__(self, call: Callable[[FrameType], object]) -> None:
        self._call = call
        self._codes: set[CodeType] = set()
        # By the identity of code: to hash it takes longer than many a line of it.
        self._offsets: dict[int, frozenset[int]] = {}
        self._tool: int | None = None

    def enable(self, codes: Collection[CodeType]) -> None:
        """Begin with some code, in all threads that run it; nothing happens where others have taken all tools."""
        free = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), None)
        if self._tool is None and free is not None:
            self._tool = free
            monitoring.use_tool_id(free, "koi")
            monitoring.register_callback(free, monitoring.events.INSTRUCTION, self)
        if self._tool is not None:
            for code in self._codes.union(codes) - self._codes:
                self._offsets[id(code)] = _interruptible_offsets(code)
                monitoring.set_local_events(self._tool, code, monitoring.events.INSTRUCTION)
            self._codes.update(codes)

    def disable(self) -> None:
        """End it for all code."""
        if self._tool is not None:
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, monitoring.events.NO_EVENTS)
            monitoring.free_tool_id(self._tool)
        self._codes.clear()
        self._offsets.clear()
        self._tool = None

    def __call__(self, code: CodeType, offset: int) -> None:
        """Pass an instruction on that code may be interrupted before."""
        if offset in self._offsets.get(id(code), ()):
            self._call(sys._getframe(1))


def _interruptible_offsets(code: CodeType) -> frozenset[int]:
    """Where the lines and the loops of some code begin.

    Not where it jumps back: an error that comes up there passes by the `finally` around a loop.
    """
    starts = {offset for offset, _ in dis.findlinestarts(code)}
    jumps = {step.offset: int(step.argval) for step in dis.get_instructions(code) if step.opname == "JUMP_BACKWARD"}
    return frozenset((starts - jumps.keys()) | {*jumps.values()})


def raise_at(error: type[BaseException], thread: int, targets: MutableMapping[FrameType, int]) -> bool:
    """Raise an error in a thread if its innermost frame is a target, and only there; says whether it was.

    Of Python 3.11, which raises what another thread has asked for where a thread goes on. Later versions may first
    return from a function or call one.

    Args:
        targets: frames with the number of their thread. Whoever empties it meanwhile prevents the error.
    """
    from ctypes import c_ulong, py_object, pythonapi

    set_error = pythonapi.PyThreadState_SetAsyncExc
    set_error.argtypes = [c_ulong, py_object]
    # No step of this runs bytecode, so that no other thread has its turn between the look at the frame and the end.
    frames = map(itemgetter(thread), iter(sys._current_frames, None))
    threads = map(targets.get, frames, repeat(0))  # no thread has the number 0
    try:
        return bool(next(map(set_error, threads, repeat(error))))
    except KeyError:  # the thread has ended
        return False
