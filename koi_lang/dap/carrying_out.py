"""A program under the debugger: run, or replayed, in the process that was forked for it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from opcode import opmap
from types import CodeType, FrameType
from typing import Any

from koi_lang.dap.branching import BranchPlan
from koi_lang.dap.debugger import Debugger
from koi_lang.dap.host import ConsoleHost
from koi_lang.dap.launch import DebuggedProgram
from koi_lang.dap.lines import ProgramLines, is_function
from koi_lang.dap.nodes import CallNode, current_node, innermost
from koi_lang.errors import EXIT_INTERRUPTED, EXIT_OK, capture, exit_code
from koi_lang.program.error_report import explain
from koi_lang.runtime.journal.history import History, lasting_entries, until_interrupted
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.replay.doubts import stop_always
from koi_lang.runtime.replay.location import current_path
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.known_history import going_on
from koi_lang.sessions.recording import recording
from koi_lang.testing.recorded import carry_out_again, run_again


class DebugLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stops with the program, so that no time limit ends a paused run.

    Attributes:
        debugger: knows how long that was.
    """

    debugger: Debugger | None = None

    def time(self) -> float:
        """Seconds that only grow."""
        return super().time() - (0.0 if self.debugger is None else self.debugger.service.waited_s)


def carry_out(program: DebuggedProgram, debugger: Debugger, host: ConsoleHost, branch: BranchPlan | None = None) -> int:
    """Run or replay a program to its end and return its exit code; its error is reported once.

    Args:
        branch: how a branch of the recorded run goes on; None for a run that begins, or a replay.
    """
    try:
        with asyncio.Runner(loop_factory=lambda: _loop(debugger)) as runner:
            runner.run(_work(program, debugger, host, branch))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    except Exception as error:  # told to the person; the process ends with its code
        text = program.ready.redactor()(explain(error, str(program.ready.folder)))
        debugger.service.tell(f"{text}\n", "stderr")
        return exit_code(error)
    return EXIT_OK


def _loop(debugger: Debugger) -> DebugLoop:
    loop = DebugLoop()
    loop.debugger = debugger
    return loop


def _work(
    program: DebuggedProgram, debugger: Debugger, host: ConsoleHost, branch: BranchPlan | None
) -> Coroutine[Any, Any, None]:
    if branch is not None:
        return _branch(program, branch, debugger, host)
    if program.journal is not None:
        return _replay(program, program.journal, debugger, host)
    return _run(program, debugger, host, Continuation())


async def _replay(program: DebuggedProgram, journal: Journal, debugger: Debugger, host: ConsoleHost) -> None:
    """Repeat a recorded run, without effects outside of the program."""
    module = program.ready.module
    history = History(until_interrupted(journal.entries), "replay", program.ready.redactor())
    run = run_again(module, journal, history, host=host, consumers=[debugger.follow], debugger=debugger)
    async with run:
        ended = await capture(_run_traced(carry_out_again(run, module, journal), program, debugger))
        debugger.stop_at_end()
        ended.result()


async def _branch(program: DebuggedProgram, plan: BranchPlan, debugger: Debugger, host: ConsoleHost) -> None:
    """Go on from a place of a recorded run, in a journal of its own."""
    assert program.journal is not None, "a branch of a recorded run"
    assert program.branching is not None, "a branch of a recorded run"
    journal, ready = program.journal, program.branching()
    lasting = lasting_entries(journal.entries)
    entries = plan.entries(lasting)
    history = History(entries, "branch", ready.redactor(), stop_always, lasting)
    going = going_on(history, journal, plan.at, program.words)
    host.log(f"going on as a branch of {journal.header.run}")
    await _run(replace(program, ready=ready), debugger, host, going)


async def _run(program: DebuggedProgram, debugger: Debugger, host: ConsoleHost, going: Continuation) -> None:
    ready = program.ready
    own = {} if going.history is None else {"history": going.history, "seed": going.seed, "today": going.today}
    run = ready.run(
        host,
        [debugger.follow],
        host.log,
        payload=ready.options.payload,
        limits=ready.options.limits_here,
        detailed=True,
        debugger=debugger,
        clock=lambda: time.monotonic() - debugger.service.waited_s,
        **own,
    )
    with recording(run, ready, going):
        async with run:
            await _run_traced(ready.module.main(), program, debugger)
            run.ledger.require_within_budget()


async def _run_traced(work: Coroutine[Any, Any, Any], program: DebuggedProgram, debugger: Debugger) -> None:
    """Do the work of a program under the tracer."""
    tracer = Tracer(program.lines, debugger.reach, debugger.note_failure)
    tracer.start()
    try:
        await work
    finally:
        tracer.stop()


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
        self._lines = lines
        self._reach = reach
        self._fail = fail
        self._wanted: dict[CodeType, bool] = {}

    def start(self) -> None:
        """Follow calls from now on."""
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
            node.line = frame.f_lineno
            node.frame = None
            node.is_over = True
            if current_node.get() is node:
                current_node.set(node.parent)
        return frame.f_trace


def _is_suspended(node: CallNode, frame: FrameType) -> bool:
    """Whether a coroutine or generator gives control away and will go on."""
    code = frame.f_code
    if node.failing or not code.co_flags & SUSPENDABLE:
        return False
    return code.co_code[frame.f_lasti] in SUSPENDED
