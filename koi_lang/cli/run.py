"""`koi run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_program, complete_run
from koi_lang.cli.options import (
    argument_options,
    no_memory_option,
    options_from,
    plain_option,
    plan_option,
    result_option,
    running_options,
    verbose_option,
)
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.doubts import on_doubt_option
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.messages import show_warnings
from koi_lang.errors import JournalError, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.program import cache, loader
from koi_lang.runtime.journal.calls import PYTHON
from koi_lang.sessions.options import RunOptions

if TYPE_CHECKING:
    from koi_lang.cli import do, models, rerunning, watching
    from koi_lang.program import typed_code
else:
    do = lazy_module("koi_lang.cli.do")
    models = lazy_module("koi_lang.cli.models")
    rerunning = lazy_module("koi_lang.cli.rerunning")
    watching = lazy_module("koi_lang.cli.watching")
    typed_code = lazy_module("koi_lang.program.typed_code")

# Begins what `koi do` was called with.
DO = ("do",)


@click.command()
@click.argument("file", required=False, shell_complete=complete_program)
@click.option("-c", "code", metavar="CODE", help="Run CODE, declarations and statements, in the place of a file.")
@argument_options("what `run` passes on")
@running_options("the whole run", "until the last playbook ends")
@click.option("--record/--no-record", default=None, help="Write a journal of the run, which is the default.")
@plan_option
@no_memory_option
@click.option(
    "--no-plans",
    "uses_plans",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Ask models also where `koi freeze` has frozen their plans.",
)
@plain_option
@verbose_option
@click.option("--json", "as_json", is_flag=True, help="Write every event to stdout as one JSON object a line.")
@result_option
@click.option("--watch", is_flag=True, help="Run again at each change of a file, as a branch of the run before.")
@click.option(
    "--since",
    metavar="RUN",
    shell_complete=complete_run,
    help="Take over what has not changed since an earlier run, such as `last`.",
)
@on_doubt_option
@click.option("--trust", is_flag=True, help="With `--since`: also from a journal that this machine has not signed.")
@click.option("--no-precalculate", is_flag=True, hidden=True)
@click.pass_context
def command(context: click.Context, /, file: str | None, code: str | None, **given: Any) -> None:
    """Run FILE. Standard output carries only what the program prints; a terminal also shows the result."""
    options = options_from(given)
    file = _program(file, code)
    if given["since"] or given["watch"]:
        leave(_run_on(file, context))
    if options.model == "?":
        options = replace(options, model=models.pick(options.lookup))
    leave(run_program(file, _load_program(file, given), options))


def _load_program(file: str, given: Mapping[str, Any]) -> cache.CachedModule:
    """A program that may be run; its warnings are shown. Raises CompileError."""
    entry = loader.load_compiled(file, strict=given["strict"], fresh=given["no_cache"])
    if not given["quiet"]:
        show_warnings(entry.warnings)
    return entry


def _run_on(file: str, context: click.Context) -> int:
    """Run a program as a branch of an earlier run, perhaps at each change; gives the exit code. Raises KoiError."""
    given = context.params
    if given["code"]:
        raise UsageError("`-c` has no file that could change", help="Write the program into a file.")
    wanted = rerunning.RerunOptions(given["since"] or "", given["on_doubt"], given["trust"])
    if given["watch"]:
        return watching.Watcher(file, context, lambda: _load_program(file, given), wanted).run_until_interrupted()
    return rerunning.run_again(file, _load_program(file, given), context, wanted)


def _program(file: str | None, code: str | None) -> str:
    """The file of a program, or the one that code is kept in, so that its run can be resumed. Raises UsageError."""
    if bool(file) == bool(code and code.strip()):
        message = "both a file and code are given" if file else "there is nothing to run"
        raise UsageError(message, help="Write `koi run FILE`, or `koi run -c 'CODE'`.")
    return file or typed_code.keep(str(code), Path.cwd())


def options_of(words: Sequence[str]) -> RunOptions:
    """The options in the words of a command line that began with `run`, or that Python's options stand for.

    Raises:
        JournalError: they are of another command.
    """
    if tuple(words[:1]) == DO:
        return do.options_in(words[1:])
    if not words or words[0] not in ("run", PYTHON):
        message = f"the run was started with `koi {' '.join(words)}`"
        raise JournalError(message, help="Only runs of `koi run` can be resumed or replayed.")
    return options_from(command.make_context("run", list(words[1:])).params)
