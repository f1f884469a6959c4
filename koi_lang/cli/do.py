"""`koi do`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from koi_lang.cli import models
from koi_lang.cli.lessons import offer_lessons
from koi_lang.cli.options import (
    Count,
    no_memory_option,
    options_from,
    plain_option,
    plan_option,
    running_options,
    verbose_option,
)
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.undo_report import changes_text
from koi_lang.errors import UsageError
from koi_lang.program import loader
from koi_lang.runtime.ports import RunPort
from koi_lang.sessions.options import COMMAND_HELP, RunOptions
from koi_lang.system import resources

THINK_HELP = """Weigh TASK before it is done: your own AGENTS.md, the votes of five members, then the work.

The work is held to the conditions of the votes. A block ends with exit code 5, and nothing was done; `--override` lifts
it once, and `--simulate` tells what would follow. The same as `koi do --think TASK`.
"""


@click.command()
@click.argument("task")
@click.option("-i", "--rounds", type=Count(), help="Most rounds until the tests pass, 3 by default.")
@running_options("the whole run", "until the work ends")
@click.option("--record/--no-record", default=None, help="Write a journal of the run, which is the default.")
@click.option("--think", "thinks", is_flag=True, help="Have a council weigh the task first, as `koi think` does.")
@click.option("--override", "overrides", is_flag=True, help="Lift a block of the council once, in your own words.")
@click.option("--simulate", "simulates", is_flag=True, help="Tell what would follow from the task, and do nothing.")
@plan_option
@no_memory_option
@plain_option
@verbose_option
@click.option("--json", "as_json", is_flag=True, help="Write every event to stdout as one JSON object a line.")
def command(**given: Any) -> None:
    """Have an agent carry out TASK in the project of this folder, until its tests pass.

    Every change and every command is asked about, unless rules allow it; `koi undo` puts the files back. The exit code
    is 0 for work that the tests accept, 3 for the best that came of it, 4 where a limit was reached, 1 for errors.
    At the end you are asked which lessons to keep of what you said against something.
    """
    carry_out(given)


def carry_out(given: Mapping[str, Any]) -> None:
    """Carry out a task to its end, with the options of the command line, and leave."""
    options = options_of(given)
    if options.model == "?":
        options = replace(options, model=models.pick(options.lookup))
    file = str(resources.standard_skills() / f"programs/{'think' if given['thinks'] else 'do'}.koi")
    entry = loader.load_compiled(file, strict=given["strict"], fresh=given["no_cache"])
    runs: list[str] = []

    def report(run: RunPort) -> str:
        runs.append(run.id)
        return changes_text(run)

    code = run_program(file, entry, replace(options, report=report))
    for run in runs:
        offer_lessons(run, options)
    leave(code)


def options_of(given: Mapping[str, Any]) -> RunOptions:
    """The options of a run from those of the command line. Raises UsageError."""
    if not given["task"].strip():
        raise UsageError("there is nothing to do", help='Write a task, such as koi do "mend what fails".')
    rounds = {} if given["rounds"] is None else {"rounds": given["rounds"]}
    wishes = {name: True for name in ("overrides", "simulates") if given[name]}
    if wishes and not given["thinks"]:
        raise UsageError("`--override` and `--simulate` are about a council", help="Write `koi think TASK`.")
    if given["overrides"] and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("`--override` asks you why, and nobody is at a terminal", help="Run it in a terminal.")
    options = options_from(given)
    words = ("do", "--think", *options.words[1:]) if options.words[:1] == ("think",) else options.words
    return replace(
        options,
        words=words,
        plan=options.plan or given["simulates"],
        payload={"task": given["task"], **rounds, **wishes},
        as_result=False,
        report=changes_text,
        missing_model_help="" if options.rehearse else COMMAND_HELP,
    )


def options_in(words: Sequence[str]) -> RunOptions:
    """The options in the words behind `do` of a command line."""
    return options_of(command.make_context("do", list(words)).params)
