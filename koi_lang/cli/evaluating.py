"""The evals of a program to an evaluation at a terminal, new or going on, and what came of it to an exit code."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import click

from koi_lang.cli.ui.doubts import Doubts, Wish, can_ask
from koi_lang.cli.ui.output import writing
from koi_lang.cli.ui.text import count_text, has_colours, usage_text
from koi_lang.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, JournalError
from koi_lang.evaluation.case_run import has_header, read_case_answers
from koi_lang.evaluation.evaluation import EvalBudget, Evaluation, Plan, plan_evaluation, spent_before
from koi_lang.evaluation.inspect_logs import InspectedEval, write_inspect_log
from koi_lang.evaluation.records import (
    CaseRecord,
    EvaluationJournal,
    begin_journal,
    new_id,
    records_in,
    reopen_journal,
    total_usage,
)
from koi_lang.evaluation.report import case_line, failure_lines, summary_lines
from koi_lang.evaluation.summary import compare, summarise_eval
from koi_lang.program import declarations, loader
from koi_lang.program.eval_blocks import evals_of
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import is_evaluation
from koi_lang.runtime.journal.history import in_doubt, lasting_entries
from koi_lang.runtime.journal.reader import Journal, read, read_header
from koi_lang.runtime.test_blocks.evals import EvalBlock
from koi_lang.sessions.known_history import is_changed, own_journal
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.system.text_width import clean
from koi_lang.testing.selection import selection


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What the command line says about an evaluation.

    Attributes:
        text: chooses evals by their names; None for all.
        most: how many cases of each eval are taken; None for all.
        budget_usd: the most money for all of it; None without a limit.
        since: the evaluation that it is compared with; None for none.
        inspect: the folder that logs for `inspect view` are written into; None for none.
        trusted: whether it may go on with journals that this machine has not signed.
    """

    jobs: int
    timeout_s: float
    text: str | None = None
    most: int | None = None
    budget_usd: float | None = None
    since: str | None = None
    inspect: Path | None = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Going:
    """An evaluation that goes on.

    Attributes:
        words: that the command line adds to those that it was begun with.
        wishes: what becomes of effects in doubt, as `Doubts` takes them.
    """

    journal: Journal
    words: Sequence[str]
    wishes: Sequence[Wish] = ()


@dataclass(slots=True)
class EvalProgress:
    """What has been found out so far of an evaluation."""

    plan: Plan
    evaluation: Evaluation
    records: list[CaseRecord] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every case has come to its end."""
        return len(self.records) == len(self.plan.cases)


def chosen_evals(ready: Prepared, text: str | None) -> list[EvalBlock]:
    """The evals of a program that `-k` chooses, by its file and their names."""
    chosen: Callable[[str], bool] = selection(text) if text is not None else lambda _: True
    return [block for block in evals_of(ready.module) if chosen(f"{Path(ready.path).name}: {block.name}")]


def prepare_evals(file: str, options: RunOptions) -> Prepared:
    """A program with evals, loaded. Raises KoiError, also for settings that its cases could not be carried out by."""
    ready = prepare_program(file, loader.load_compiled(file), options)
    declarations.require_servers(ready.module, options.settings)
    return ready


def evaluate(ready: Prepared, options: EvalOptions, going: Going | None = None) -> tuple[int, float]:
    """Carry out the evals of a program and tell what comes of them; gives the exit code, and what was spent in usd.

    Args:
        going: on from here; None for a new one.

    Raises:
        KoiError: it cannot be carried out; then no model was asked.
    """
    before = _records_since(ready, options.since)
    progress = _plan(ready, options, None if going is None else going.journal)
    if going is not None and (going.wishes or can_ask()):
        _decide_doubts(progress.evaluation, Doubts(going.wishes, ready.redactor()), ready.folder)
    if options.inspect is not None:
        with writing(options.inspect):
            options.inspect.mkdir(parents=True, exist_ok=True)
    since = perf_counter()
    plan = progress.plan
    with (
        begin_journal(plan.id, ready, plan.digest)
        if going is None
        else reopen_journal(going.journal, ready, going.words)
    ) as journal:
        _carry_out(progress, journal, options)
        if progress.is_whole:
            journal.note_end()
    if progress.evaluation.refusal and not progress.records:
        return _refuse(progress, ready.folder), 0.0
    code = _tell(progress, before, perf_counter() - since)
    if options.inspect is not None:
        with writing(options.inspect):
            _write_logs(progress, ready, options.inspect)
    return code, progress.evaluation.budget.total


def _records_since(ready: Prepared, since: str | None) -> list[CaseRecord]:
    """What an earlier evaluation has found out. Raises JournalError."""
    if since is None:
        return []
    journal = own_journal(store.find(ready.folder, since), ready.folder, lambda line: None)
    if not is_evaluation(journal.header):
        help = "`koi eval` tells the id of each evaluation."
        raise JournalError(f"`{journal.header.run}` is no evaluation", help=help)
    return records_in(journal.entries)


def _plan(ready: Prepared, options: EvalOptions, journal: Journal | None) -> EvalProgress:
    blocks = chosen_evals(ready, options.text)
    answers = None if ready.options.answers is None else read_case_answers(Path(ready.options.answers))
    id = new_id() if journal is None else journal.header.run
    plan = plan_evaluation(id, ready, blocks, answers, options.most)
    if journal is not None:
        _require_same(journal, plan, ready)
    known = [] if journal is None else records_in(journal.entries)
    over = {record.number for record in known}
    left = deque(case for case in plan.cases if case.number not in over)
    spent = {record.number: record.usage.usd for record in known} | spent_before(left, ready.folder)
    return EvalProgress(plan, Evaluation(EvalBudget(options.budget_usd, spent), left), known)


def _decide_doubts(evaluation: Evaluation, doubts: Doubts, folder: Path) -> None:
    """Have it decided what becomes of the effects of cases that were begun and did not end; some may stay open."""
    for number, case in enumerate(evaluation.left):
        path = store.path_of(folder, case.id)
        begun = in_doubt(lasting_entries(read(path).entries)) if has_header(path) else []
        if begun:
            click.echo(f"`{case.id}` ({clean(case.name)}):", err=True)
        evaluation.left[number] = replace(case, decisions=doubts.decide_each(begun), usual_decision=doubts.rest)


def _require_same(journal: Journal, plan: Plan, ready: Prepared) -> None:
    """Raise JournalError when what is evaluated is not what it was."""
    header = journal.header
    is_other = header.payload.get("cases") != plan.digest
    if is_other or is_changed(header, ready.entry):
        what = "its cases have" if is_other else "the program, or Koi, has"
        help = f"Begin another one; `koi eval --since {header.run}` compares it with what is known of this one."
        raise JournalError(f"{what} changed since the evaluation `{header.run}` was begun", help=help)


def _carry_out(progress: EvalProgress, journal: EvaluationJournal, options: EvalOptions) -> None:
    """Carry out the cases that are left into `progress`, as far as that comes."""
    times = {block.name: block.times for block in progress.plan.blocks}
    has, told = has_colours(sys.stdout), dict[str, str]()
    try:
        with closing(progress.evaluation.carry_out(jobs=options.jobs, timeout_s=options.timeout_s)) as arriving:
            for record in arriving:
                journal.note_case(record)
                progress.records.append(record)
                click.echo(case_line(record, times[record.eval], colour=has), color=has)
                if not record.ok:
                    click.echo("\n".join(failure_lines(record, told)))
    except KeyboardInterrupt:
        progress.is_interrupted = True


# ---------------------------------------------------------------- what is told


def _tell(progress: EvalProgress, before: Sequence[CaseRecord], seconds: float) -> int:
    has, code = has_colours(sys.stdout), EXIT_OK
    for block in progress.plan.blocks:
        records = [record for record in progress.records if record.eval == block.name]
        if records:
            summary = summarise_eval(block.name, block.accept, records)
            old = [record for record in before if record.eval == block.name]
            for line in summary_lines(summary, compare(old, records) if old else None, colour=has):
                click.echo(line, color=has)
            code = EXIT_FAILED if summary.is_missed else code
    usage = total_usage(progress.records)
    runs = count_text(len(progress.records), "run")
    click.echo(f"\n{runs}, {usage_text(usage)}, {seconds:.1f} s; evaluation {progress.plan.id}")
    _tell_what_is_left(progress)
    if progress.is_interrupted:
        return EXIT_INTERRUPTED
    return code if progress.is_whole else EXIT_FAILED


def _write_logs(progress: EvalProgress, ready: Prepared, target: Path) -> None:
    """Write what has been found out for `inspect view`. Raises OSError."""
    plan, stand_in = progress.plan, "scripted/scripted" if ready.options.answers else "none/none"
    started = read_header(store.path_of(ready.folder, plan.id)).started
    for block in plan.blocks:
        found = [record for record in progress.records if record.eval == block.name]
        records = sorted(found, key=lambda record: record.number)
        if records:
            total = sum(case.case["eval"] == block.name for case in plan.cases)
            inspected = InspectedEval(
                id=plan.id,
                program=ready.path,
                started=started,
                summary=summarise_eval(block.name, block.accept, records),
                records=records,
                cases={case.number: case.case["data"] for case in plan.cases},
                source=block.over if isinstance(block.over, str) else "",
                model=ready.options.model or stand_in,
                is_whole=len(records) == total,
            )
            path = write_inspect_log(inspected, target, ready.folder, ready.redactor())
            click.echo(f"log: {clean(str(path))}", err=True)


def _refuse(progress: EvalProgress, folder: Path) -> int:
    """Tell why no case can be carried out, and forget what would have been; gives the exit code."""
    click.echo(clean(progress.evaluation.refusal), err=True)
    store.delete(store.path_of(folder, progress.plan.id))
    return EXIT_USAGE


def _tell_what_is_left(progress: EvalProgress) -> None:
    evaluation, id = progress.evaluation, progress.plan.id
    for case, message in evaluation.stuck:
        click.echo(clean(f"`{case.id}` ({case.name}) cannot go on:\n{message}"), err=True)
    if progress.is_whole:
        return
    done = f"{len(progress.records):,} of {len(progress.plan.cases):,} runs are done"
    if evaluation.refusal:
        click.echo(f"{clean(evaluation.refusal)}\n{done}; `koi resume {id} -m MODEL` goes on", err=True)
        return
    if evaluation.is_out_of_money:
        budget = evaluation.budget
        told = f"${budget.total:.4f} of ${budget.usd:g} are spent, and {done}"
        click.echo(f"{told}; `koi resume {id} --max-usd USD` goes on with more", err=True)
        return
    click.echo(f"{'interrupted: ' if progress.is_interrupted else ''}{done}; `koi resume {id}` goes on", err=True)
