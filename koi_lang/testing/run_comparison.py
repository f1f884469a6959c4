"""Differences of two recorded runs, causes before consequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from koi_lang.events import ModelAnswered, ModelAsked
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import until_interrupted
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.replay.comparison import COMPARED

# Of two runs answers of models are compared, too: a replay takes them as they are.
COMPARED_RUNS: Mapping[str, tuple[str, ...]] = {
    **COMPARED,
    ModelAsked.type: ("model", "request"),
    ModelAnswered.type: ("text",),
}
MAX_CHARS = 2000
Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Something that one of two runs did otherwise; None on the side of one that has not done it."""

    before: JournalEntry | None
    after: JournalEntry | None

    def as_data(self) -> dict[str, Any]:
        """The JSON form: `before` and `after` hold the fields that were compared."""
        known = self.before or self.after
        assert known is not None
        sides = {"before": _side(self.before), "after": _side(self.after)}
        return {"kind": known.kind, "path": list(known.path), "agent": known.agent, **sides}


def compare_runs(before: Journal, after: Journal, most: int = MAX_CHARS) -> list[RunDifference]:
    """The differences of two runs, at most so many; steps are paired by their place in the run."""
    first, second = _by_place(before), _by_place(after)
    return list(islice(_differences(first, second), most))


def _by_place(journal: Journal) -> dict[Key, JournalEntry]:
    """The entries that are compared, each under its place; of several the latest counts, where the first one stood."""
    kept = (entry for entry in until_interrupted(journal.entries) if entry.kind in COMPARED_RUNS)
    return {(entry.kind, entry.path): entry for entry in kept}


def _differences(first: Mapping[Key, JournalEntry], second: Mapping[Key, JournalEntry]) -> Iterator[RunDifference]:
    """In the order of the first run; steps of only the second one stand behind their predecessor there."""
    new = _new_behind(second, first)
    yield from new.get(None, ())
    for key, entry in first.items():
        other = second.get(key)
        if other is None or _side_fields(entry) != _side_fields(other):
            yield RunDifference(entry, other)
        yield from new.get(key, ())


def _new_behind(
    second: Mapping[Key, JournalEntry], first: Mapping[Key, JournalEntry]
) -> Mapping[Key | None, Sequence[RunDifference]]:
    """The steps of only the second run, by the last common step before them."""
    found: dict[Key | None, list[RunDifference]] = {}
    last: Key | None = None
    for key, entry in second.items():
        if key in first:
            last = key
        else:
            found.setdefault(last, []).append(RunDifference(None, entry))
    return found


def _side_fields(entry: JournalEntry) -> Mapping[str, Any]:
    return {name: entry.data[name] for name in COMPARED_RUNS[entry.kind] if name in entry.data}


def _side(entry: JournalEntry | None) -> dict[str, Any] | None:
    return None if entry is None else {"n": entry.n, "fields": dict(_side_fields(entry))}
