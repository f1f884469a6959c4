"""`koi do`."""

from __future__ import annotations

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


@click.command()
@click.argument("task")
@click.option("-i", "--rounds", type=Count(), help="Most rounds until the tests pass, 3 by default.")
@running_options("the whole run", "until the work ends")
@click.option("--record/--no-record", default=None, help="Write a journal of the run, which is the default.")
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
    options = options_of(given)
    if options.model == "?":
        options = replace(options, model=models.pick(options.key_lookup()))
    file = str(resources.standard_skills() / "programs/do.koi")
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
    options = options_from(given)
    return replace(
        options,
        payload={"task": given["task"], **rounds},
        as_result=False,
        report=changes_text,
        missing_model_help="" if options.rehearse else COMMAND_HELP,
    )


def options_in(words: Sequence[str]) -> RunOptions:
    """The options in the words behind `do` of a command line."""
    return options_of(command.make_context("do", list(words)).params)
