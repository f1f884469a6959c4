"""`koi eval`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from koi_lang.cli.completing.values import complete_program, complete_run
from koi_lang.cli.evaluating import EvalOptions, Going, chosen_evals, evaluate, prepare_evals
from koi_lang.cli.options import (
    Amount,
    Count,
    add_options,
    allow_option,
    answers_option,
    keys_option,
    limiting_options,
    no_extensions_option,
    options_from,
    seconds,
    trust_folder_option,
)
from koi_lang.cli.ui.colours import colour_option
from koi_lang.cli.ui.doubts import Wish
from koi_lang.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from koi_lang.program.files import inside
from koi_lang.runtime.journal.reader import Journal
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared

EVALS = ".eval.koi"
EXIT_NOTHING = 5
MODEL = "-m"
DEFAULT_TIMEOUT_S = 600.0


class NothingToEvaluateError(UsageError):
    """No eval was found or chosen."""

    exit_code = EXIT_NOTHING


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_program)
@click.option("-k", "text", metavar="TEXT", help="Only evals whose file or name has TEXT: `greets and not slow`.")
@click.option("-n", "--cases", "most", type=Count(), metavar="N", help="Only the first cases of each eval.")
@click.option("-j", "--jobs", type=Count(), metavar="N", help="How many processes work at a time; default: all cores.")
@click.option(
    "--since", metavar="RUN", shell_complete=complete_run, help="Compare with an earlier evaluation, case by case."
)
@click.option("--inspect", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write logs for `inspect view` into a folder.")  # fmt: skip
@answers_option
@keys_option
@allow_option
@trust_folder_option
@add_options(*limiting_options("each case", "of each case, 10m by default", money="all cases together"))
@click.option("--max-usd-per-case", type=Amount(), help="Most money of each case.")
@no_extensions_option
@colour_option
def command(paths: tuple[str, ...], **given: Any) -> None:
    """Carry out the evals in files and folders, and measure what comes of them; without PATH, in the current folder.

    In folders these are the files *.eval.koi. Each case is a recorded run. Exit codes: 0 as many passed as had to,
    1 too few did, or not all cases were carried out, 2 wrong usage, 5 there was nothing to run, 130 interrupted.
    """
    options, how = parsed_options(given)
    programs = [
        ready for file in _files(paths or (".",)) if chosen_evals(ready := prepare_evals(file, options), how.text)
    ]
    if not programs:
        _say_that_there_is_nothing(how.text)
    if how.since is not None and len(programs) > 1:
        raise UsageError("`--since` compares the evals of one file", help="Name the file, or choose with `-k`.")
    sys.exit(_evaluate_all(programs, how))


def parsed_options(given: Mapping[str, Any]) -> tuple[RunOptions, EvalOptions]:
    """The options of each case, and those of the evaluation. Raises UsageError."""
    own = {name: value for name, value in given.items() if name in EvalOptions.__dataclass_fields__}
    most_time = given["max_time"]
    own["timeout_s"] = DEFAULT_TIMEOUT_S if most_time is None else seconds("--max-time", most_time)
    own["jobs"], own["budget_usd"] = given["jobs"] or os.cpu_count() or 1, given["max_usd"]
    # The process of a case ends with its time, and the money of all cases bounds what is begun.
    of_case = {**given, "max_usd": given["max_usd_per_case"], "max_time": None, "record": True, "quiet": True}
    return options_from(of_case), EvalOptions(**own)


def options_of(words: Sequence[str]) -> tuple[RunOptions, EvalOptions]:
    """The options in the words of a command line that began with `eval`."""
    return parsed_options(command.make_context("eval", list(words[1:])).params)


def resume_evaluation(
    journal: Journal, since: Sequence[str], words: Sequence[str], *, trusted: bool, wishes: Sequence[Wish] = ()
) -> int:
    """Go on with an evaluation; gives the exit code. Raises KoiError.

    Args:
        since: what was said each time that it went on.
        words: what is said now.
        trusted: whether it may go on with journals that this machine has not signed.
        wishes: what becomes of effects in doubt, as `Doubts` takes them.
    """
    header, more = journal.header, (*since, *words)
    options, how = options_of((*header.words, *more))
    if MODEL in more:
        options = replace(options, answers=None)
    ready = prepare_evals(header.program, replace(options, words=header.words))
    return evaluate(ready, replace(how, trusted=trusted), Going(journal, words, wishes))[0]


def _evaluate_all(programs: Sequence[Prepared], how: EvalOptions) -> int:
    """Evaluate one program after the other within one budget; gives the exit code."""
    codes, left = [EXIT_OK], how.budget_usd
    for ready in programs:
        code, spent = evaluate(ready, replace(how, budget_usd=left))
        codes.append(code)
        left = None if left is None else max(0.0, left - spent)
        if code == EXIT_INTERRUPTED:
            return code
    return max(codes)


def _files(paths: Sequence[str]) -> Iterator[str]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (str(file) for file in sorted(inside(path.resolve(), "")) if file.name.endswith(EVALS))
        else:
            yield str(path)


def _say_that_there_is_nothing(text: str | None) -> None:
    if text is not None:
        raise NothingToEvaluateError(f"no eval has `{text}` in its name")
    help = 'write `eval "name" over "./cases.jsonl" { … }` in a file whose name ends with `.eval.koi`.'
    raise NothingToEvaluateError("there are no evals here", help=help)
