"""The records of an evaluation's cases, in a journal of its own for resuming."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.evaluation.case_run import CaseRun, EvalOutcome
from koi_lang.events import RunEnded
from koi_lang.runtime.journal.entries import TOTALS, Header, JournalEntry
from koi_lang.runtime.journal.history import RESUMED
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.journal.writer import FolderRuns, Writer
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.trust import signer_or_none
from koi_lang.version import __version__

CASE_ENDED = "case_ended"


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """The record of a case in its n-th run.

    Attributes:
        number: of its run, from 1 on.
        key: tells by its content which case of another evaluation is the same.
        message: what a person is told of a failure; empty when the case passed.
        run: id of its run.
    """

    number: int
    eval: str
    case: str
    key: str
    repeat: int
    run: str
    ok: bool
    seconds: float = 0.0
    message: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    usage: UsageTotals = field(default_factory=UsageTotals)

    def as_data(self) -> dict[str, Any]:
        """The fields of its entry."""
        names = ("number", "eval", "case", "key", "repeat", "run", "ok", "seconds", "message")
        own = {name: getattr(self, name) for name in names}
        return {**own, "scores": dict(self.scores), "usage": self.usage.as_data()}

    @staticmethod
    def of(data: Mapping[str, Any]) -> CaseRecord:
        """The record in the fields of an entry."""
        usage = UsageTotals.of_data(data.get("usage")) or UsageTotals()
        known = {name: value for name, value in data.items() if name in CaseRecord.__dataclass_fields__}
        return CaseRecord(**{**known, "usage": usage})


def record_of(case: CaseRun, outcome: EvalOutcome) -> CaseRecord:
    """The record of a completed case."""
    about = case.case
    own = (case.number, about["eval"], about["id"], about["key"], about["repeat"], case.id)
    return CaseRecord(*own, outcome.ok, outcome.seconds, outcome.message, outcome.scores, outcome.usage)


def records_in(entries: Iterable[JournalEntry]) -> list[CaseRecord]:
    """The records in the journal of an evaluation, by their numbers."""
    found = {entry.data["number"]: CaseRecord.of(entry.data) for entry in entries if entry.kind == CASE_ENDED}
    return [found[number] for number in sorted(found)]


def total_usage(records: Iterable[CaseRecord]) -> UsageTotals:
    """The usage of some cases."""
    total = UsageTotals()
    for record in records:
        total.requests += record.usage.requests
        total.tokens += record.usage.tokens
        total.usd += record.usage.usd
        total.unpriced |= record.usage.unpriced
    return total


def new_id() -> str:
    """The id of a new evaluation."""
    return os.urandom(6).hex()


class EvaluationJournal:
    """The journal of an evaluation while it goes on."""

    def __init__(self, writer: Writer, known: Iterable[CaseRecord] = ()) -> None:
        self._writer, self._totals = writer, total_usage(known)

    def note_case(self, record: CaseRecord) -> None:
        """Write the record of a case. Raises JournalError."""
        self._totals = replace(self._totals, by_kind={})
        usage = record.usage
        self._totals.requests += usage.requests
        self._totals.tokens += usage.tokens
        self._totals.usd += usage.usd
        self._totals.unpriced |= usage.unpriced
        self._writer.note(CASE_ENDED, **record.as_data(), **{TOTALS: self._totals.as_data()})

    def note_end(self) -> None:
        """Write down that every case was carried out. Raises JournalError."""
        self._writer.note(RunEnded.type, ok=True, **{TOTALS: self._totals.as_data()})
        self._writer.settle()


@contextmanager
def begin_journal(id: str, ready: Prepared, cases: str) -> Iterator[EvaluationJournal]:
    """A context in which a new evaluation is written down. Raises JournalError.

    Args:
        cases: what tells whether its cases have changed.
    """
    options = ready.options
    identity = (id, time.time(), ready.path, ready.version, __version__, tuple(options.words))
    writer = _runs(ready).create(Header(*identity, payload={"cases": cases}, limits=options.limits_here))
    with closing(writer):
        yield EvaluationJournal(writer)


@contextmanager
def reopen_journal(journal: Journal, ready: Prepared, words: Sequence[str]) -> Iterator[EvaluationJournal]:
    """A context in which an evaluation that goes on is written down. Raises JournalError.

    Args:
        words: that the command line adds to those that it was begun with.
    """
    with closing(_runs(ready).open(journal.end)) as writer:
        writer.note(RESUMED, words=list(words))
        yield EvaluationJournal(writer, records_in(journal.entries))


def _runs(ready: Prepared) -> FolderRuns:
    def fail(error: JournalError) -> None:
        raise error

    return FolderRuns(ready.folder, ready.redactor(), fail, signer_or_none(ready.folder, lambda line: None))
