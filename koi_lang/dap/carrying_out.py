"""A program under the debugger: run, or replayed, in the process that was forked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from koi_lang.dap.debugger import Debugger
from koi_lang.dap.host import ConsoleHost
from koi_lang.dap.launch import DebuggedProgram
from koi_lang.dap.tracer import Tracer
from koi_lang.errors import EXIT_INTERRUPTED, EXIT_OK, exit_code
from koi_lang.outcome import capture
from koi_lang.program.error_report import explain
from koi_lang.runtime.journal.history import History, until_interrupted
from koi_lang.runtime.journal.reader import Journal
from koi_lang.sessions.continuation import Continuation
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
        return super().time() - (0.0 if self.debugger is None else self.debugger.waited_s)


def carry_out(program: DebuggedProgram, debugger: Debugger, host: ConsoleHost) -> int:
    """Run a program to its end and give its exit code; what goes wrong is told once."""
    journal = program.journal
    work = _run(program, debugger, host) if journal is None else _replay(program, journal, debugger, host)
    try:
        with asyncio.Runner(loop_factory=lambda: _loop(debugger)) as runner:
            runner.run(work)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    except Exception as error:  # told to the person; the process ends with its code
        text = program.ready.redactor()(explain(error, str(program.ready.folder)))
        debugger.tell(f"{text}\n", "stderr")
        return exit_code(error)
    return EXIT_OK


def _loop(debugger: Debugger) -> DebugLoop:
    loop = DebugLoop()
    loop.debugger = debugger
    return loop


async def _replay(program: DebuggedProgram, journal: Journal, debugger: Debugger, host: ConsoleHost) -> None:
    """Do what a recorded run has done, and nothing outside of the program."""
    module = program.ready.module
    history = History(until_interrupted(journal.entries), "replay", program.ready.redactor())
    run = run_again(module, journal, history, host=host, consumers=[debugger.follow], debugger=debugger)
    async with run:
        ended = await capture(_run_traced(carry_out_again(run, module, journal), program, debugger))
        debugger.stop_at_end()
        ended.result()


async def _run(program: DebuggedProgram, debugger: Debugger, host: ConsoleHost) -> None:
    ready = program.ready
    run = ready.run(
        host,
        [debugger.follow],
        host.log,
        payload=ready.options.payload,
        limits=ready.options.limits_here,
        detailed=True,
        debugger=debugger,
    )
    with recording(run, ready, Continuation()):
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
