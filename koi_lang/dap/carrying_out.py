"""A program under the debugger: run, or replayed, in the process that was forked for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from koi_lang.dap.branching import BranchPlan
from koi_lang.dap.debugger import Debugger
from koi_lang.dap.host import ConsoleHost
from koi_lang.dap.launch import DebuggedProgram
from koi_lang.dap.tracer import Tracer
from koi_lang.errors import EXIT_INTERRUPTED, EXIT_OK, exit_code
from koi_lang.outcome import capture
from koi_lang.program.error_report import explain
from koi_lang.runtime.journal.history import History, lasting_entries, until_interrupted
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.replay.doubts import stop_always
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.known_history import going_on
from koi_lang.sessions.recording import recording
from koi_lang.testing.recorded import carry_out_again, run_again


class DebugLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands while the program is stopped, so that no time limit ends what a person looks at.

    Attributes:
        debugger: knows how long that was.
    """

    debugger: Debugger | None = None

    def time(self) -> float:
        """Seconds that only grow."""
        return super().time() - (0.0 if self.debugger is None else self.debugger.service.waited_s)


def carry_out(program: DebuggedProgram, debugger: Debugger, host: ConsoleHost, branch: BranchPlan | None = None) -> int:
    """Run or replay a program to its end and give its exit code; what goes wrong is told once.

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
    """Do what a recorded run has done, and nothing outside of the program."""
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
