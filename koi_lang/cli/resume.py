"""`koi resume`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.options import (
    Count,
    add_options,
    allow_option,
    argument_options,
    limiting_options,
    limiting_words,
    payload_of,
    plain_option,
    quiet_option,
    result_option,
    settings_here,
    trust_folder_option,
    verbose_option,
)
from koi_lang.cli.run import options_of
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.doubts import Doubts, list_effects, on_doubt_option
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.trust import confirm_trust
from koi_lang.cli.ui.undo_report import plan_lines
from koi_lang.errors import JournalError, UsageError
from koi_lang.events import Event, LinePrinted, ModelAnswered
from koi_lang.lazy import lazy_module
from koi_lang.program import cache, loader
from koi_lang.program.files import absolute
from koi_lang.redaction.redactor import HIDDEN
from koi_lang.runtime.file_changes.run_changes import without_file_changes
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import is_evaluation, is_of_python, is_session, require_run
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import History, in_doubt, lasting_entries
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.summary import UNFINISHED, summarise
from koi_lang.runtime.replay.policies import Mode
from koi_lang.sessions.branch_preview import back_to
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.file_undo import undo_in_journal
from koi_lang.sessions.known_history import going_on, is_changed, readable, require_entry, words_since
from koi_lang.sessions.options import RESUME_HELP, RunOptions
from koi_lang.sessions.trust import require_trust
from koi_lang.setup.keys.lookup import Keys
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.cli import eval as eval_command
    from koi_lang.cli import models
else:
    eval_command = lazy_module("koi_lang.cli.eval")
    models = lazy_module("koi_lang.cli.models")

MODEL = "-m"
MONEY, MONEY_OF_CASE = "--max-usd", "--max-usd-per-case"


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """How a run is to go on, as the command line says it."""

    at: int | None
    answer: str | None
    branch: bool
    is_model_chosen: bool
    doubts: Doubts
    files: bool = False
    program: str | None = None
    words: Sequence[str] = ()


@click.command()
@click.argument("run", metavar="[ID]", required=False, shell_complete=complete_run)
@click.option("--at", type=click.IntRange(1), metavar="ENTRY", help="Go back to an entry and go on as a branch.")
@click.option("--answer", metavar="TEXT", help="With `--at`: what the model, or the person, is to have answered there.")
@click.option("--files", is_flag=True, help="With `--at`: put back the files as they were at the entry.")
@click.option("--branch", is_flag=True, help="Go on in a journal of its own, also where the program does otherwise.")
@click.option(
    "--program",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="With `--at`: another version of the program.",
)
@on_doubt_option
@click.option("--trust", is_flag=True, help="Go on with a journal that this machine has not signed.")
@argument_options("what was kept secret")
@allow_option
@trust_folder_option
@add_options(*limiting_options("the whole run, with what it has taken", "from now on"))
@click.option("-j", "--jobs", type=Count(), metavar="N", help="How many processes work at a time on an evaluation.")
@quiet_option
@verbose_option
@plain_option
@result_option
@click.option("--json", "as_json", is_flag=True, help="Write every event to stdout as one JSON object a line.")
def command(run: str | None, trust: bool, **given: Any) -> None:
    """Go on with an interrupted run or evaluation; ID may be the beginning of an id, or `last`.

    Without ID it is the last run of this folder that did not end well. Nothing that was done is done again.
    """
    path = store.find(Path.cwd(), run) if run else _last_unfinished()
    journal = readable(path, Path.cwd(), lambda text: click.echo(text, err=True))
    if is_evaluation(journal.header):
        require_trust(journal, trusted=trust, confirm=confirm_trust)
        leave(_resume_evaluation(journal, {**given, "trusted": trust}))
    require_run(journal.header)
    require_trust(journal, trusted=trust, confirm=confirm_trust)
    more = (*words_since(journal), *(words := _words(given)))
    options = _options_of(journal, more)
    if MODEL in more:  # which answers instead of what stood in for a model
        options = replace(options, answers=None, rehearse=False)
    if options.missing_model_help:
        options = replace(options, missing_model_help=RESUME_HELP)
    options = replace(
        options, payload={**options.payload, **payload_of(given["pairs"], given["document"])}, record=True
    )
    quiet, verbose = given["quiet"] or options.quiet, given["verbose"] or options.verbose
    how = {"quiet": quiet, "verbose": verbose, "plain": given["plain"] or options.plain, "as_json": given["as_json"]}
    options = replace(options, **how, as_result=given["as_result"] or options.as_result)
    _require_known(options, journal)
    program = journal.header.program if given["program"] is None else absolute(given["program"])
    entry = loader.load_compiled(program)
    doubts = Doubts(given["on_doubt"], options.redact)
    wishes = ResumeOptions(given["at"], given["answer"], given["branch"], MODEL in more, doubts, given["files"])
    wishes = replace(wishes, program=given["program"], words=words)
    going = _continuation(path, journal, entry, options, wishes)
    if wishes.files:
        _put_files_back(journal, wishes, options)
    kept = KeptAnswers()
    going = replace(going, words=(*journal.header.words, *more), more=words, consumers=[kept])
    code = run_program(program, entry, options, going, doubts)
    line = kept.line(journal.entries)
    if line and going.parent is not None and not options.quiet:
        click.echo(line, err=True)
    left = going.history.left_behind() if going.history is not None else []
    if left and not options.quiet:
        redact = options.redact
        click.echo(clean(redact(f"left behind, which this branch has not done: {list_effects(left)}")), err=True)
    leave(code)


def _options_of(journal: Journal, more: Sequence[str]) -> RunOptions:
    """What was said when the run was begun, and since; a case was begun with its evaluation."""
    if not journal.header.case:
        return options_of((*journal.header.words, *more))
    # What is said of the money of a run is said of this case, not of its evaluation.
    of_case = [MONEY_OF_CASE if word == MONEY else word for word in more]
    return eval_command.options_of((*journal.header.words, *of_case))[0]


def _resume_evaluation(journal: Journal, given: Mapping[str, Any]) -> int:
    """Go on with an evaluation; gives the exit code. Raises KoiError."""
    header = journal.header
    if given["at"] is not None or given["branch"]:
        help = f"Go back in the run of a case: `koi resume {header.run}-1 --at ENTRY`."
        raise UsageError(f"`{header.run}` is an evaluation, which has no entries to go back to", help=help)
    if summarise(store.path_of(Path.cwd(), header.run)).state == "ok":
        help = f"Begin another one; `koi eval --since {header.run}` compares it with this one."
        raise JournalError(f"the evaluation `{header.run}` has come to its end", help=help)
    words = (*_words(given), *(("-j", str(given["jobs"])) if given["jobs"] else ()))
    how = {"trusted": given["trusted"], "wishes": given["on_doubt"]}
    return eval_command.resume_evaluation(journal, words_since(journal), words, **how)


def _words(given: Mapping[str, Any]) -> tuple[str, ...]:
    """What the command line says of models and limits."""
    model = models.pick(Keys(settings_here())) if given["model"] == "?" else given["model"]
    return limiting_words({**given, "model": model})


def _last_unfinished() -> Path:
    """The journal of the last run of a command or a Python program that did not end well and has no branch.

    Raises:
        JournalError: there is none.
    """
    branches: dict[str, str] = {}
    found = filterfalse(store.is_part, store.journals(Path.cwd()))  # cases go on with their evaluation
    help = "`koi runs list` shows the runs of this folder; `koi resume ID --at ENTRY` goes back in one of them."
    for path in reversed(list(found)):
        summary = summarise(path)
        if summary.header.parent:
            branches[summary.header.parent[0]] = summary.header.run
        # What a Python program has left with an error has no call that could go on.
        is_over = is_of_python(summary.header.words) or is_session(summary.header)
        unfinished = ("interrupted",) if is_over else UNFINISHED
        if summary.state not in unfinished:
            continue
        run = summary.header.run
        if run not in branches:
            return path
        help = f"`{run}` went on as the branch `{branches[run]}`; `koi resume {run}` goes on with it once more."
    raise JournalError("no run of this folder was interrupted", help=help)


def _require_known(options: RunOptions, journal: Journal) -> None:
    hidden = [name for name, value in options.payload.items() if HIDDEN in str(value)]
    if hidden:
        help = f"Give it again: koi resume {journal.header.run} --arg {hidden[0]}=…"
        raise UsageError(f"the value of `{hidden[0]}` is not in the journal, since it is a secret", help=help)


# ---------------------------------------------------------------- what the run goes on from


def _continuation(
    path: Path, journal: Journal, entry: cache.CachedModule, options: RunOptions, wishes: ResumeOptions
) -> Continuation:
    header, entries = journal.header, lasting_entries(journal.entries)
    is_branch = _is_branch(path, journal, entry, wishes)
    if wishes.at is not None:
        require_entry(wishes.at, journal)
        entries = back_to(wishes.at, wishes.answer, entries)
    redact = options.redact
    wishes.doubts.decide_beforehand(in_doubt(entries))
    lasting = lasting_entries(journal.entries)
    if wishes.files and wishes.at is not None:
        lasting = without_file_changes(lasting, wishes.at)
    mode: Mode = "branch" if is_branch else "resume"
    is_other = is_changed(header, entry)
    history = History(
        entries,
        mode,
        redact,
        wishes.doubts,
        lasting,
        is_of_changed_program=is_other,
        keeps_models=not wishes.is_model_chosen,
    )
    _tell(options, header.run, entries, is_branch=is_branch, words=wishes.words)
    behind = [entry for entry in history.left_behind() if history.outcome(entry.path) is None]
    if behind and not options.quiet:
        message = f"the run did this later on; you are asked before it is done again: {list_effects(behind)}"
        click.echo(clean(redact(message)), err=True)
    return going_on(history, journal, wishes.at, header.words)


def _is_branch(path: Path, journal: Journal, entry: cache.CachedModule, wishes: ResumeOptions) -> bool:
    """Whether the run goes on in a journal of its own. Raises JournalError when there is nothing to go on with."""
    header = journal.header
    of_entry = {"--answer": wishes.answer is not None, "--files": wishes.files, "--program": bool(wishes.program)}
    needless = [name for name, is_given in of_entry.items() if is_given and wishes.at is None]
    if needless:
        help = "`koi runs tree ID` shows the entries with their numbers."
        raise UsageError(f"`{needless[0]}` needs `--at`", help=help)
    if wishes.at is not None or wishes.branch or is_changed(header, entry):
        return True
    if summarise(path).state == "ok":
        help = "`--at ENTRY` goes back to an entry; a program that has been changed can go on as a branch."
        raise JournalError(f"the run `{header.run}` has ended well, so there is nothing to go on with", help=help)
    return False


def _put_files_back(journal: Journal, wishes: ResumeOptions, options: RunOptions) -> None:
    """Have the files as they were at the entry, or leave all of them. Raises KoiError."""
    run, at = journal.header.run, wishes.at or 0
    if journal.header.parent and any(entry.n == at and entry.data.get("recalled") for entry in journal.entries):
        parent = journal.header.parent[0]
        help = f"Go back in that run: `koi runs tree {parent}` shows its entries."
        raise UsageError(f"entry {at} happened in `{parent}`, whose files this branch does not know", help=help)
    redact = options.redact
    undo = RunUndo(Path.cwd(), run, journal.entries, options.settings)
    plan = undo.plan(at)
    refused = len(plan.refusals)
    for line in plan_lines(undo, plan, redact) if refused or not options.quiet else ():
        click.echo(line, err=True)
    if not refused:
        done = undo_in_journal(undo, journal, plan, redact)
        refused = sum(bool(each.refusal) for each in done)
    if refused:
        help = "Put them right, or go on without `--files`."
        raise JournalError(f"{refused} of the files cannot be put back as they were at entry {at}", help=help)


def _tell(
    options: RunOptions, run: str, entries: Sequence[JournalEntry], *, is_branch: bool, words: Sequence[str]
) -> None:
    if options.quiet:
        return
    kinds = Counter(entry.kind for entry in entries)
    how = "going on as a branch of" if is_branch else "resuming"
    counts = {"action": kinds["done"], "model answer": kinds[ModelAnswered.type]}
    if not any(counts.values()):
        counts = {"line of output": kinds[LinePrinted.type]}
    known = " and ".join(_count(number, what) for what, number in counts.items())
    allowed = f"; allowed as before: {', '.join(options.allow)}" if options.allow else ""
    click.echo(f"{how} {run}: {known} {'is' if list(counts.values()) == [1] else 'are'} known{allowed}", err=True)
    kept = {f"max_{name}": value for name, value in options.limits.items() if f"--max-{name}" not in words}
    if "max_time" in kept:
        kept["max_time"] = f"{kept['max_time']:g}s"
    if kept:
        click.echo(f"limits as before: {' '.join(limiting_words(kept))}; a larger value here raises one", err=True)


class KeptAnswers:
    """Counts the model answers that a branch has taken over."""

    def __init__(self) -> None:
        self.answers = 0

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        self.answers += isinstance(event.data, ModelAnswered) and event.recalled

    def line(self, entries: Sequence[JournalEntry]) -> str:
        """What was saved; empty where no model had been asked."""
        asked = sum(entry.kind == ModelAnswered.type for entry in entries)
        if not asked:
            return ""
        return f"{self.answers} of {_count(asked, 'model answer')} were reused and not requested again"


def _count(number: int, what: str) -> str:
    first, *rest = what.split(" of ")
    return " of ".join([f"{number} {first}{'' if number == 1 else 's'}", *rest])
