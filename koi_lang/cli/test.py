"""`koi test`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import Count, seconds, settings_here, trust_folder_option
from koi_lang.cli.ui.output import writing
from koi_lang.cli.ui.text import has_colours
from koi_lang.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UsageError
from koi_lang.sessions.options import require_settings
from koi_lang.sessions.plan_checks import collect_plan
from koi_lang.system.text_width import clean
from koi_lang.testing.blocks import TestBlock
from koi_lang.testing.cases import Case, CaseResult, title
from koi_lang.testing.discovery import COLLECTORS, PLAN, find
from koi_lang.testing.orders import Orders
from koi_lang.testing.pool import results
from koi_lang.testing.report import case_line, junit, line, report, result_line
from koi_lang.testing.selection import selection

EXIT_NOTHING = 5
ALL_COLLECTORS = {**COLLECTORS, PLAN: collect_plan}


@dataclass(frozen=True, slots=True)
class TestOptions:
    """What the command line says about the tests."""

    jobs: int
    timeout_s: float
    stop_early: bool
    verbose: bool
    as_json: bool
    durations: int
    junit: Path | None


@dataclass(slots=True)
class TestProgress:
    """What has been found out so far; `interrupted` says that the person did not want to wait for the rest."""

    results: list[CaseResult] = field(default_factory=list)
    interrupted: bool = False


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_program)
@click.option("-k", "text", metavar="TEXT", help="Only tests whose file or name has TEXT: `greets and not slow`.")
@click.option("-j", "--jobs", type=Count(), metavar="N", help="How many processes work at a time; default: all cores.")
@click.option("-x", "--exitfirst", "stop_early", is_flag=True, help="Stop after the first failure.")
@click.option("-v", "--verbose", is_flag=True, help="One line for each test.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each test, as it ends.")
@click.option("--list", "only_list", is_flag=True, help="List the tests and run none.")
@click.option("--max-time", metavar="TIME", default="60s", help="Most time of a test, 60s by default.")
@click.option("--durations", type=click.IntRange(0), default=0, metavar="N", help="List the N slowest tests.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a JUnit report.")
@click.option("--orders", type=Count(), metavar="N", help="Run each `test` block in up to N orders of events.")
@click.option("--seed", default="", metavar="TEXT", help="Choose other orders.")
@click.option("--order", "only_order", metavar="ORDER", help="Run in the order that a failure names.")
@click.option("--update", is_flag=True, help="Write anew what recorded runs expect.")
@trust_folder_option
def command(
    paths: tuple[str, ...],
    text: str | None,
    jobs: int | None,
    only_list: bool,
    update: bool,
    max_time: str,
    orders: int | None,
    seed: str,
    only_order: str | None,
    **given: Any,
) -> None:
    """Run the tests in files and folders; without PATH, those in the current folder. FILE::NAME is one test.

    In folders these are the files *.test.koi, recorded runs in folders called `tests`, and frozen plans in `plans`.
    Exit codes: 0 all passed, 1 some failed, 2 wrong usage, 5 there was nothing to run, 130 interrupted.
    """
    timeout_s = seconds("--max-time", max_time)
    chosen = selection(text) if text is not None else lambda _: True
    cases = [case for case in find(paths or (".",), update=update, collectors=ALL_COLLECTORS) if chosen(title(case))]
    if seed and orders is None:
        raise UsageError("`--seed` chooses among orders", help="Write `--orders N` with it.")
    if orders is not None and only_order is not None:
        raise UsageError("`--order` is one order, and `--orders` many", help="Write one of the two.")
    if orders is not None or only_order is not None:
        chosen_orders = Orders(orders or 1, seed, only_order or "")
        cases = [replace(case, orders=chosen_orders) if isinstance(case, TestBlock) else case for case in cases]
    if not cases:
        _say_that_there_is_nothing(text)
    if only_list:
        click.echo("\n".join(map(case_line, cases)) if given["as_json"] else clean("\n".join(map(title, cases))))
        sys.exit(EXIT_OK)
    require_settings(settings_here())  # the processes of the tests read them again, and ask nobody
    options = TestOptions(jobs=jobs or os.cpu_count() or 1, timeout_s=timeout_s, **given)
    sys.exit(_run(cases, options))


def _say_that_there_is_nothing(text: str | None) -> None:
    if text is not None:
        raise NothingToRunError(f"no test has `{text}` in its name", help="`koi test --list` lists all tests.")
    help = 'write `test "name" { … }` in a file whose name ends with `.test.koi`.'
    raise NothingToRunError("there are no tests here", help=help)


class NothingToRunError(UsageError):
    """No test was found or chosen."""

    exit_code = EXIT_NOTHING


def _run(cases: Sequence[Case], options: TestOptions) -> int:
    """Run the cases, tell what came of them, and give the exit code."""
    begin, done = time.perf_counter(), TestProgress()
    try:
        _collect(cases, options, done)
    except KeyboardInterrupt:
        done.interrupted = True
    order = {case: number for number, case in enumerate(cases)}
    done.results.sort(key=lambda result: order[result.case])
    seconds = time.perf_counter() - begin
    if options.junit is not None:
        with writing(options.junit):
            options.junit.write_bytes(junit(done.results, seconds))
    has = has_colours(sys.stdout)
    for text in [] if options.as_json else report(done.results, seconds, colour=has, durations=options.durations):
        click.echo(text, color=has)
    if done.interrupted:
        click.echo(f"interrupted after {len(done.results)} of {len(cases)} tests", err=True)
        return EXIT_INTERRUPTED
    return EXIT_OK if all(result.outcome.ok for result in done.results) else EXIT_FAILED


def _collect(cases: Sequence[Case], options: TestOptions, done: TestProgress) -> None:
    """Run the cases into `done`, as far as they come."""
    has, as_json = has_colours(sys.stdout), options.as_json
    shows_progress = sys.stderr.isatty() and not (options.verbose or as_json)
    with closing(results(cases, jobs=options.jobs, timeout_s=options.timeout_s)) as arriving:
        for result in arriving:
            done.results.append(result)
            if as_json:
                click.echo(result_line(result))
            elif options.verbose:
                click.echo(line(result, colour=has), color=has)
            elif shows_progress:
                click.echo(f"\r{len(done.results)} of {len(cases)}\x1b[K", err=True, nl=False)
            if options.stop_early and not result.outcome.ok:
                break
    if shows_progress:
        click.echo("\r\x1b[K", err=True, nl=False)
