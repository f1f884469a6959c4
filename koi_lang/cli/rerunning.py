"""A program run again as a branch of an earlier run: with which options, and how much was taken over in the end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from koi_lang.cli.options import options_from
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.doubts import Doubts, Wish, list_effects
from koi_lang.cli.ui.text import count_text, usage_text
from koi_lang.cli.ui.trust import confirm_trust
from koi_lang.errors import UsageError
from koi_lang.program import cache
from koi_lang.program.files import absolute
from koi_lang.redaction.redactor import HIDDEN
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import Journal
from koi_lang.sessions.earlier_run import ReuseMeter, find_earlier, read_earlier
from koi_lang.sessions.known_history import going_on, words_since
from koi_lang.sessions.options import LIMITS, RunOptions
from koi_lang.sessions.trust import require_trust
from koi_lang.system.text_width import clean

# What a run is given as the one before was, where its command line does not say otherwise.
KEPT = (
    *("pairs", "document", "model", "effort", "keys", "answers", "rehearse", "allow", "no_extensions", "plan"),
    *(f"max_{name}" for name in LIMITS),
)
# Which of these count no more where another one is given.
REPLACED = {
    "document": ("pairs",),
    "model": ("answers", "rehearse"),
    "answers": ("rehearse",),
    "rehearse": ("answers",),
}


@dataclass(frozen=True, slots=True)
class RerunOptions:
    """What the command line says about going on from an earlier run.

    Attributes:
        run: its id, the beginning of one, or `last`.
        wishes: what becomes of effects in doubt.
        trusted: whether a journal will do that this machine has not signed.
        scope: has the run end when it is cancelled.
        meter: counts the reused answers.
    """

    run: str
    wishes: Sequence[Wish] = ()
    trusted: bool = False
    scope: CancelScope | None = None
    meter: ReuseMeter = field(default_factory=ReuseMeter)


def run_again(file: str, entry: cache.CachedModule, context: click.Context, wanted: RerunOptions) -> int:
    """Run a program as a branch of an earlier run, report the reused parts, and return the exit code.

    Args:
        context: of the command line, whose options go before those of the earlier run.

    Raises:
        KoiError: there is no such run, or it cannot be gone on from.
    """
    folder, options = Path.cwd(), options_from(context.params)

    def note(line: str) -> None:
        if not options.quiet:
            click.echo(clean(line), err=True)

    path = find_earlier(folder, wanted.run, absolute(file), entry)
    trust = partial(require_trust, trusted=wanted.trusted, confirm=confirm_trust)
    earlier = read_earlier(path, folder, note, trust)
    given = merge_options(context, earlier.journals[0])
    options, words = options_from(given), words_of(context.command, given)
    _require_known(options, earlier.header.run)
    redact = options.redact
    doubts = Doubts(wanted.wishes, redact)
    history = earlier.history(entry, redact, doubts)
    going = going_on(history, earlier.journals[0], None, ("run", *words, file))
    going = replace(going, consumers=[wanted.meter], scope=wanted.scope, command=f"koi run {shlex.quote(file)} --since")
    note(redact(f"going on from {earlier.header.run}{'; as before: ' if words else ''}{shlex.join(words)}"))
    code = run_program(file, entry, options, going, doubts)
    was_cut = wanted.scope is not None and wanted.scope.caught is not None
    for line in reuse_lines(wanted.meter, [] if was_cut else history.left_behind()):
        note(redact(line))
    return code


def merge_options(context: click.Context, earlier: Journal) -> dict[str, Any]:
    """The options of a command line, with those of an earlier run where it says nothing."""
    words = (*earlier.header.words[1:], *words_since(earlier))
    before = context.command.make_context("run", list(words)).params
    given = [name for name in KEPT if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    dropped = {other for name in given for other in REPLACED.get(name, ())}
    merged = dict(context.params)
    for name in KEPT:
        if isinstance(merged[name], tuple):
            kept = [] if name in dropped else [each for each in before[name] if each not in merged[name]]
            merged[name] = (*kept, *merged[name])
        elif name not in given and name not in dropped:
            merged[name] = before[name]
    return merged


def words_of(command: click.Command, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a command line that further runs get, too."""
    options = {option.name: option for option in command.params if option.name in KEPT}
    return tuple(word for name in KEPT for word in _words(options[name].opts[0], given[name]))


def _words(option: str, value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        yield from (word for each in value for word in (option, str(each)))
    elif value is True:
        yield option
    elif value is not None and value is not False:
        yield from (option, str(value))


def _require_known(options: RunOptions, run: str) -> None:
    hidden = [name for name, value in options.payload.items() if HIDDEN in str(value)]
    if hidden:
        help = f"Give it again: `--arg {hidden[0]}=…`."
        raise UsageError(
            f"the value of `{hidden[0]}` is not in the journal of `{run}`, since it is a secret", help=help
        )


def reuse_lines(meter: ReuseMeter, left: Sequence[JournalEntry]) -> Iterator[str]:
    """The parts of the run before that a run has reused, and those that it has neither reused nor done."""
    if meter.taken_over or meter.asked:
        kept = f"{count_text(meter.taken_over, 'model answer')} reused ({usage_text(meter.saved)})"
        yield f"{kept}, {meter.asked:,} requested again ({usage_text(meter.spent)})"
    if left:
        yield f"left behind, which this run has not done: {list_effects(left)}"
