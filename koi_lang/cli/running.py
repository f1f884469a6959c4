"""Runs of prepared programs at a terminal, and their exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.ui.doubts import Doubts
from koi_lang.cli.ui.interrupts import BY_SIGNAL, carried_out
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.cli.ui.reporters import CostMeter, DenialNotice, as_json, as_lines
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.typed_input import typing
from koi_lang.errors import OverLimitError, ProviderError, UsageError, exit_code, innermost
from koi_lang.lazy import lazy_module
from koi_lang.program import cache, declarations
from koi_lang.runtime.budget.limits import Budget, LimitReachedError
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.journal.calls import is_of_python
from koi_lang.runtime.journal.entries import Redact, plain
from koi_lang.runtime.run import Run
from koi_lang.service.live.run_socket import RunSocket
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.options import LIMITS, RunOptions
from koi_lang.sessions.prepared import ModelNeededError, Prepared, prepare_program
from koi_lang.sessions.recording import recording
from koi_lang.sessions.shared_host import SharedHost
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.cli.ui import live_view, undo_report
    from koi_lang.evaluation import case_run
    from koi_lang.llm import scripted
    from koi_lang.program import recorded_calls
else:
    scripted = lazy_module("koi_lang.llm.scripted")
    case_run = lazy_module("koi_lang.evaluation.case_run")
    live_view = lazy_module("koi_lang.cli.ui.live_view")
    undo_report = lazy_module("koi_lang.cli.ui.undo_report")
    recorded_calls = lazy_module("koi_lang.program.recorded_calls")

# What can be put right outside of the program, beside limits.
MENDABLE = (ProviderError, OverLimitError, ModelNeededError, NobodyToAskError)
# How limits are written that are no whole numbers.
AMOUNTS = {"usd": "USD", "time": "TIME"}


def run_program(
    file: str,
    entry: cache.CachedModule,
    options: RunOptions,
    going: Continuation | None = None,
    doubts: Doubts | None = None,
) -> int:
    """Run to the end and return the exit code; each error is reported once.

    Args:
        doubts: decide about effects in doubt, for which they may hold the terminal.
    """
    if options.as_json and options.as_result:
        raise UsageError("`--json` and `--result` both write to stdout", help="Leave one of them out.")
    redact = options.redact
    host = Terminal(quiet=options.quiet, silent=options.as_json, aside=bool(options.as_result))
    if doubts is not None:
        doubts.hold = host.hold
    journals: list[Path] = []
    failures: list[BaseException] = []
    is_new = going is None or going.history is None

    def work() -> None:
        ready = prepare_program(file, entry, options)
        case = case_run.ReopenedCase(going.case) if going is not None and going.case else None
        ready = ready if case is None else case.prepare(ready)
        if not (case or (going is not None and is_of_python(going.words))) and not hasattr(ready.module, "main"):
            help = "Add a line like `run Agent.handler({})` at its end."
            help = f"Its evals are carried out by `koi eval {file}`." if hasattr(ready.module, "koi_evals") else help
            help = f"Its jobs are started by `koi serve http {file}`." if hasattr(ready.module, "koi_jobs") else help
            raise UsageError(f"`{file}` runs nothing", help=help)
        if not (options.quiet or case) and is_new:
            _tell_jobs(file, ready.module, host)
        if is_new and options.answers is not None:
            scripted.read_answers(Path(options.answers))  # what is wrong with them is told before anything happens
        if is_new:
            declarations.require_servers(ready.module, ready.options.settings)
        shared = SharedHost(host, lambda text: None if options.quiet else host.log(f"» {text}"))
        live = RunSocket(ready, shared.board, shared)
        begun = replace(going or Continuation(), live=live)
        main = _within(live.scope, _main(ready, host, shared, begun, case, journals.append))
        carried_out(_within(begun.scope, main) if begun.scope is not None else main, host.log)
        live.require_not_aborted()

    def note_failure(error: Exception) -> int:
        failures.append(innermost(error))
        return exit_code(error)

    code = exit_code_of(work, debug=options.debug, redact=redact, code_of=note_failure)
    if journals and options.verbose and not (options.quiet or options.debug):
        click.echo(f"`koi runs show {journals[0].stem} --full` has the texts that models read and wrote", err=True)
    limits = [each for each in failures if isinstance(each, LimitReachedError) and each.limit in LIMITS]
    mendable = [*limits, *(each for each in failures if isinstance(each, MENDABLE))]
    if journals and not options.quiet and (code > BY_SIGNAL or mendable):
        command, when = (going or Continuation()).command, ", once that is put right" if mendable else ""
        other = ", or with `-m MODEL`" if any(isinstance(each, ProviderError) for each in mendable) else ""
        raised = {each.limit: AMOUNTS.get(each.limit, "N") for each in limits if not each.is_beyond_run}
        if raised and len(raised) == len(mendable):
            when, other = " with a higher limit", ""
        more = "".join(f" --max-{limit} {amount}" for limit, amount in raised.items())
        click.echo(f"`{command} {journals[0].stem}{more}` goes on{when}{other}", err=True)
    return code


def _tell_jobs(file: str, module: ModuleType, host: Terminal) -> None:
    """Say in one line that the jobs of a program are left to a service."""
    jobs = declarations.jobs_of(module)
    if jobs:
        them, are = (f"{len(jobs)} jobs", "are") if len(jobs) > 1 else (f"the job `{jobs[0].name}`", "is")
        host.note(f"{them} {are} left to `koi serve http {file}`")


async def _within(scope: CancelScope, work: Coroutine[Any, Any, None]) -> None:
    """Do some work, unless somebody has it ended meanwhile."""
    async with scope:
        await work


async def _main(
    ready: Prepared,
    host: Terminal,
    shared: SharedHost,
    going: Continuation,
    case: case_run.ReopenedCase | None,
    tell_journal: Callable[[Path], None],
) -> None:
    options = ready.options
    bill = CostMeter()
    redact = ready.redactor()
    run = ready.run(
        shared,
        [bill, DenialNotice(lambda text: host.log(redact(text))), *going.consumers, *_consumers(ready, host, bill)],
        host.note,
        payload=options.payload,
        limits=options.session_limits if is_of_python(going.words) else options.limits_here,
        verbatim=options.debug,
        detailed=options.record is not False or going.history is not None,
        history=going.history,
        id=going.run,
        seed=going.seed,
        **({} if going.history is None else {"today": going.today}),
    )
    report = options.report
    try:
        with recording(run, ready, going) as writer, host.status.show_run(run), _typing(host, run):
            if writer is not None:
                tell_journal(writer.path)
            async with run:
                if is_of_python(going.words):
                    await recorded_calls.repeat_calls(run, ready.module, Budget(time_s=options.call_time_s))
                elif case is not None:
                    await case.carry_out(run, ready)
                else:
                    await ready.module.main()
                run.ledger.require_within_budget()
                if case is None and not is_of_python(going.words):
                    _show_result(run.result, options, host, redact)
    except Exception as error:
        if isinstance(innermost(error), LimitReachedError):
            report = report or partial(undo_report.changes_text, unchanged="")
        raise
    finally:
        line = bill.line()
        if line is not None and not options.verbose:
            line = f"{line}, {bill.seconds:.1f} s"
        changes = "" if report is None else report(run)
        parts = [part for part in (changes, line) if part]
        if parts and (changes or options.verbose or sys.stderr.isatty()):
            host.note(redact("; ".join(parts)))


def _show_result(result: Any, options: RunOptions, host: Terminal, redact: Redact) -> None:
    """Write the result of the last `run`: as JSON, or as a note to a person at a terminal."""
    value = plain(result, redact)
    text = json.dumps(value, ensure_ascii=False)
    if options.as_result:
        click.echo(text)
    elif options.as_result is None and value not in (None, {}) and sys.stdout.isatty() and not options.as_json:
        host.note(f"returned {clean(text)}")


def _typing(host: Terminal, run: Run) -> AbstractContextManager[None]:
    """A context in which typed lines steer the run, where somebody is at a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or not run.recorded.policy.has_outside:
        return nullcontext()
    return typing(host, run)


def _consumers(ready: Prepared, host: Terminal, bill: CostMeter) -> list[Consumer]:
    """The consumers of events that the command line asks for; secrets are redacted first."""
    options, redact = ready.options, ready.redactor()
    if options.as_json:
        return [as_json(redact, "verbose" if options.debug else "detailed")]
    if options.verbose or options.debug:
        return [as_lines(host.log, redact, "verbose" if options.debug else "brief")]
    if sys.stderr.isatty() and not options.quiet:
        host.status = live_view.status_for(sys.stderr, redact, bill, plain=options.plain)
        return [host.status]
    return []
