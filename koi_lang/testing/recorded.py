"""Differences of a recorded run when its program runs again with the recorded answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from koi_lang.errors import JournalError, KoiError, ProviderError
from koi_lang.events import (
    CallEnded,
    CallStarted,
    Event,
    ModelAsked,
    RunEnded,
)
from koi_lang.extensions import additions, find_extensions
from koi_lang.llm.messages import Delta, Request
from koi_lang.program import declarations, loader
from koi_lang.program.error_report import message
from koi_lang.program.eval_blocks import carry_out_case
from koi_lang.program.files import absolute
from koi_lang.program.recorded_calls import repeat_calls, repeat_session
from koi_lang.program.runs import run_of
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.journal.calls import is_evaluation, is_of_python, is_session, require_run
from koi_lang.runtime.journal.entries import JournalEntry, written_entry
from koi_lang.runtime.journal.history import RESUMED, History, is_early_end, until_interrupted
from koi_lang.runtime.journal.reader import Journal, program_of, read
from koi_lang.runtime.replay.comparison import COMPARED, compared_data
from koi_lang.runtime.replay.digest_forms import is_of_same_form
from koi_lang.runtime.run import Run
from koi_lang.runtime.test_blocks.context import Trial
from koi_lang.settings import environment


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that was recorded and is not done, or done otherwise, or the other way round.

    Attributes:
        where: `file.koi:12` of the handler it belongs to; empty where that is not known.
        before: as recorded; None when it is new.
        now: None when it is not done any more.
    """

    path: tuple[str, ...]
    where: str
    before: Mapping[str, Any] | None
    now: Mapping[str, Any] | None

    def lines(self) -> list[str]:
        """The difference as lines of a diff."""
        head = "  ".join(part for part in (self.where, " / ".join(self.path) or "the run") if part)
        return [f"@@ {head}", *_side("-", self.before), *_side("+", self.now)]

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        sides = {"before": _fields_or_none(self.before), "after": _fields_or_none(self.now)}
        return {"path": list(self.path), "where": self.where, **sides}


def _fields_or_none(data: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if data is None else {"fields": dict(data)}


def _side(mark: str, data: Mapping[str, Any] | None) -> list[str]:
    if data is None:
        return []
    return [f"{mark} {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in data.items()]


@dataclass(slots=True)
class Replayed:
    """The result of a replay.

    Attributes:
        actions: how many actions were compared.
        answers: how many answers of models were taken from the recording.
        requests: where a model is told something else than when it answered.
        faults: what is wrong with the recording.
        error: what ended the run, where that is not what ended it before.
        is_early: whether the recorded run was ended from outside of its program, where the replay ends, too.
    """

    actions: int = 0
    answers: int = 0
    differences: list[Difference] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    faults: Sequence[str] = ()
    error: str = ""
    is_early: bool = False

    @property
    def is_same(self) -> bool:
        """Whether the program does the same."""
        return not self.differences

    def as_data(self) -> dict[str, Any]:
        """The JSON form: differences with their places, and `same`: whether there is none."""
        counts = {"same": self.is_same, "actions": self.actions, "answers": self.answers}
        fields = {"requests": self.requests, "faults": list(self.faults), "error": self.error, "early": self.is_early}
        return {**counts, "differences": [each.as_data() for each in self.differences], **fields}

    def text(self) -> str:
        """The report for a person."""
        lines = [line for difference in self.differences for line in difference.lines()]
        lines += [f"note: {fault}" for fault in self.faults]
        lines += [f"note: a model is told something else than before, in {where}" for where in self.requests]
        known = f"{_count(self.actions, 'action')}, {_count(self.answers, 'model answer')}"
        if self.is_same:
            up_to = " up to where the run was ended" if self.is_early else ""
            return "\n".join([*lines, f"replayed: {known}, nothing is different{up_to}"])
        different = _count(len(self.differences), "difference")
        end = [f"the run ended with: {self.error}"] if self.error else []
        return "\n".join(["--- recorded", "+++ now", *lines, *end, f"replayed: {known}, {different}"])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def replay(path: Path, show: Callable[[str], None], also: Sequence[Consumer] = ()) -> Replayed:
    """Run the program of a journal again, with nothing but its answers.

    Args:
        show: takes every line that the program prints.
        also: consumers of what happens now.

    Raises:
        KoiError: the journal cannot be read, or its program does not compile.
    """
    journal = read(path)
    if is_evaluation(journal.header):
        require_run(journal.header)
    file = program_of(path, journal.header)
    if not file.is_file():
        help = "Give the program its place back; `koi runs export` writes a recording that goes with its program."
        raise JournalError(f"the program `{file}` of the recording does not exist", help=help)
    module = loader.module_of(absolute(str(file)))
    return asyncio.run(_replay(module, journal, show, also))


def _limits(journal: Journal) -> Mapping[str, Any]:
    """The limits of the run, as they were when it was gone on with last."""
    limits = [entry.data.get("limits") for entry in journal.entries if entry.kind == RESUMED]
    return next((known for known in reversed(limits) if isinstance(known, dict)), journal.header.limits)


async def _replay(
    module: ModuleType, journal: Journal, show: Callable[[str], None], also: Sequence[Consumer]
) -> Replayed:
    entries = until_interrupted(journal.entries)
    redact = redactor(environment())
    history = History(entries, "replay", redact)
    comparison = Comparison(history, redact, module, is_session=is_session(journal.header))
    run = run_again(module, journal, history, host=_Shown(show), consumers=[comparison, *also])
    error = ""
    try:
        async with run:
            await carry_out_again(run, module, journal)
    except (Exception, SystemExit) as raised:  # compared as the end of the run
        error = message(raised)
    return replace(comparison.result(entries, error), faults=journal.faults)


def run_again(module: ModuleType, journal: Journal, history: History, **own: Any) -> Run:
    """A run that repeats a recorded one, and has not started yet: nothing is done outside.

    Args:
        history: for a replay of the journal's entries.
        own: further fields of `Services`.
    """
    redact = redactor(environment())
    return run_of(
        module,
        lambda llm: Recorded(),
        config={"registry": {"backend": "memory"}},
        payload=journal.header.payload,
        limits=_limits(journal),
        detailed=True,
        redact=redact,
        history=history,
        added=additions(find_extensions(module, use_installed="--no-extensions" not in journal.header.words)),
        id=journal.header.run,
        seed=journal.header.seed,
        today=journal.header.today,
        **own,
    )


async def carry_out_again(run: Run, module: ModuleType, journal: Journal) -> None:
    """Repeat the recorded run in a run that has begun, as far as it is recorded; raises its end."""
    assert run.recorded.history is not None, "a replay"
    if is_ended_early(run.recorded.history.entries):
        await run.recorder.follow_to_cut(_carry_out(run, module, journal))
        raise KoiError("the recorded run was ended here")
    await _carry_out(run, module, journal)
    run.ledger.require_within_budget()


def is_ended_early(entries: Sequence[JournalEntry]) -> bool:
    """Whether a recorded run was ended from outside of its program, so that its record says nothing about the rest."""
    end = next((entry for entry in reversed(entries) if entry.kind == RunEnded.type), None)
    if end is not None:
        return is_early_end(end)
    kinds = Counter(entry.kind for entry in entries)
    return not 0 < kinds[CallStarted.type] == kinds[CallEnded.type]  # a session that could go on


async def _carry_out(run: Run, module: ModuleType, journal: Journal) -> None:
    if is_session(journal.header):
        await repeat_session(run, module, Budget())
    elif is_of_python(journal.header.words):
        await repeat_calls(run, module, Budget())
    elif journal.header.case:
        await carry_out_case(run, module, journal.header.case, Trial())
    else:
        await module.main()


class Recorded:
    """Stands where a model stood; its answers are in the recording, so it is never asked."""

    provider = model = "recorded"

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Refuse."""
        raise ProviderError("a replay asks no model")

    async def aclose(self) -> None:
        """Nothing is held."""


class _Shown(SilentHost):
    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def print(self, text: str) -> None:
        self._show(text)

    def log(self, text: str) -> None:
        """No-op: only output is shown again."""


class Comparison:
    """A consumer of events that compares each with the record."""

    def __init__(
        self, history: History, redact: Callable[[str], str], module: ModuleType, *, is_session: bool = False
    ) -> None:
        self._history = history
        self._redact = redact
        self._module = module
        self._is_session = is_session
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self._result = Replayed()
        self._order: list[tuple[float, Difference]] = []

    def __call__(self, event: Event) -> None:
        """Compare an event."""
        entry = written_entry(event, self._redact)
        before = self._history.find(entry.kind, entry.path)
        if entry.kind == ModelAsked.type:
            self._result.answers += before is not None
            recorded = "" if before is None else str(before.data.get("request", ""))
            now = str(entry.data.get("request", ""))
            if is_of_same_form(recorded, now) and recorded != now:
                self._result.requests.append(" / ".join(entry.path))
        elif entry.kind in COMPARED and not (entry.kind == RunEnded.type and before is None and self._is_session):
            self._seen.add((entry.kind, entry.path))
            self._compare(entry, before)

    def _compare(self, entry: JournalEntry, before: JournalEntry | None) -> None:
        self._result.actions += entry.kind == "begun"
        if before is None or not self._history.is_same_entry(before, entry):
            now, then = compared_data(entry), None if before is None else compared_data(before)
            difference = Difference(entry.path, self._where(entry), then, now)
            self._order.append((float("inf") if before is None else before.n, difference))

    def result(self, entries: Sequence[JournalEntry], error: str) -> Replayed:
        """Everything that is different, in the order of the recording."""
        self._result.is_early = is_ended_early(entries)
        for entry in entries:
            if entry.kind in COMPARED and (entry.kind, entry.path) not in self._seen:
                self._order.append((entry.n, Difference(entry.path, self._where(entry), compared_data(entry), None)))
        self._order.sort(key=lambda pair: pair[0])
        self._result.differences = [difference for _, difference in self._order]
        if self._result.is_early:
            self._result.differences = [each for each in self._result.differences if each.before is not None]
        self._result.error = error if self._result.differences else ""
        return self._result

    def _where(self, entry: JournalEntry) -> str:
        """The line of the handler that an entry belongs to."""
        for label in reversed(entry.path):
            found = declarations.handler_line(self._module, label.partition("#")[0])
            if found:
                return found
        return ""
