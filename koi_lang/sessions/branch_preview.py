"""A preview of a branch at an entry: the reused part, and the estimated cost of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from koi_lang.errors import UsageError
from koi_lang.events import PAID, HandlerStarted, ModelAnswered, PersonAnswered
from koi_lang.program import cache
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import lasting_entries, unsafe_effects, until, with_answer
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.sessions.known_history import is_changed, require_entry


@dataclass(frozen=True, slots=True)
class PartPreview:
    """Part of a run.

    Attributes:
        answers: of models.
        handlers: that begin in it.
        totals: what its models took when it was recorded.
    """

    answers: int = 0
    actions: int = 0
    handlers: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)

    @staticmethod
    def of(entries: Iterable[JournalEntry]) -> PartPreview:
        """The part of some entries; reused ones of a branch count as their originals."""
        entries_of_run = [replace(entry, data={**entry.data, "recalled": False}) for entry in entries]
        count = {
            kind: sum(entry.kind == kind for entry in entries_of_run)
            for kind in (ModelAnswered.type, HandlerStarted.type)
        }
        totals = UsageTotals.of(entry for entry in entries_of_run if entry.kind in PAID)
        actions = sum(entry.kind == "done" for entry in entries_of_run)
        return PartPreview(count[ModelAnswered.type], actions, count[HandlerStarted.type], totals)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        counts = {"answers": self.answers, "actions": self.actions, "handlers": self.handlers}
        return {**counts, **self.totals.as_data()}


@dataclass(frozen=True, slots=True)
class BranchPreview:
    """The preview of a branch.

    Attributes:
        kept: what it takes over.
        anew: what the run did behind the entry: about what the branch does, and what it costs, where it goes alike.
        left: what the run did there that may not be done twice, by name; it is asked about before it is done again.
        is_changed: whether the program is another one now, so that less may be taken over.
    """

    at: int
    kept: PartPreview
    anew: PartPreview
    left: Sequence[str]
    is_changed: bool

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        parts = {"kept": self.kept.as_data(), "anew": self.anew.as_data()}
        return {"at": self.at, **parts, "left": list(self.left), "is_changed": self.is_changed}


def preview_branch(journal: Journal, at: int, entry: cache.CachedModule | None) -> BranchPreview:
    """The preview of a branch at an entry.

    Args:
        at: the number of the last entry that counts for the branch.
        entry: the program as it is now; None where it does not compile.

    Raises:
        UsageError: there is no such entry to go back to.
    """
    require_entry(at, journal)
    entries = lasting_entries(journal.entries)
    kept = until(entries, at)
    taken = {each.n for each in kept}
    anew = [each for each in entries if each.n not in taken]
    done = {each.path for each in kept if each.kind == "begun"}
    left = [str(each.data.get("intent")) for each in unsafe_effects(journal.entries) if each.path not in done]
    is_other = entry is None or is_changed(journal.header, entry)
    return BranchPreview(at, PartPreview.of(kept), PartPreview.of(anew), left, is_other)


# Which field of an entry holds the answer.
FIELDS = {ModelAnswered.type: "text", "done": "result"}


def back_to(at: int, answer: str | None, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """The entries up to one, which has another answer where there is one. Raises UsageError where it holds none."""
    kept = until(entries, at)
    if answer is None:
        return kept
    chosen = next((entry for entry in entries if entry.n == at), None)
    field = None if chosen is None else FIELDS.get(chosen.kind)
    if chosen is None or field is None or (field == "result" and not _is_from_person(chosen)):
        help = "Choose an entry `model_answered`, or the end of a `prompt_user`."
        raise UsageError(f"entry {at} is no answer that can be replaced", help=help)
    if field == "text":
        return with_answer(kept, at, field, answer)
    said = (PersonAnswered.type, chosen.path)
    kept = [replace(e, data={**e.data, "answer": answer}) if (e.kind, e.path) == said else e for e in kept]
    return with_answer(kept, at, field, {"answer": answer})


def _is_from_person(entry: JournalEntry) -> bool:
    result = entry.data.get("result")
    return entry.data.get("intent") == "prompt_user" and isinstance(result, dict)
