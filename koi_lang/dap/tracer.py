"""The tracer: Python's trace events of a program's functions to calls that begin, pass a line, fail and end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from opcode import opmap
from types import CodeType, FrameType
from typing import Any

from koi_lang.dap.lines import ProgramLines, is_function
from koi_lang.dap.nodes import CallNode, current_node, innermost
from koi_lang.runtime.replay.location import current_path

SUSPENDABLE = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR
# Where a frame stands that gives control away; from 3.13 on it is behind the yield.
SUSPENDED = (opmap["YIELD_VALUE"], opmap["RESUME"])
Reach = Callable[[CallNode], None]
Fail = Callable[[CallNode, BaseException], None]


class Tracer:
    """Follows the functions of a program in the current thread; everything else runs untraced.

    Args:
        reach: is called before a line is carried out; it may take its time, and everything waits.
        fail: is called for each call that an exception passes.
    """

    def __init__(self, lines: ProgramLines, reach: Reach, fail: Fail) -> None:
        self._lines, self._reach, self._fail = lines, reach, fail
        self._wanted: dict[CodeType, bool] = {}

    def start(self) -> None:
        """Follow what is called from now on."""
        sys.settrace(self._begin)

    def stop(self) -> None:
        """Follow nothing more."""
        sys.settrace(None)

    def _begin(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "call":
            return None
        if frame.f_trace is not None:  # a coroutine that goes on
            return frame.f_trace
        code = frame.f_code
        wanted = self._wanted.get(code)
        if wanted is None:
            wanted = self._wanted[code] = code.co_filename in self._lines.files and is_function(code)
        return self._follow(frame) if wanted else None

    def _follow(self, frame: FrameType) -> Any:
        code = frame.f_code
        playbook = self._lines.playbooks.get(code)
        name = code.co_qualname.rpartition("<locals>.")[2]
        line = code.co_firstlineno if playbook is None else playbook.first
        node = CallNode(innermost(), code.co_filename, name, line, current_path(), frame)
        node.code, node.is_playbook = code, playbook is not None
        current_node.set(node)
        return partial(self._in_call, node)

    def _in_call(self, node: CallNode, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            node.failing = False
            if not node.is_playbook:
                self._reach(node)
        elif event == "exception":
            node.failing = True
            self._fail(node, arg[1])
        elif event == "return" and not _is_suspended(node, frame):
            node.line, node.frame, node.is_over = frame.f_lineno, None, True
            if current_node.get() is node:
                current_node.set(node.parent)
        return frame.f_trace


def _is_suspended(node: CallNode, frame: FrameType) -> bool:
    """Whether a coroutine or generator gives control away and will go on."""
    code = frame.f_code
    if node.failing or not code.co_flags & SUSPENDABLE:
        return False
    return code.co_code[frame.f_lasti] in SUSPENDED
