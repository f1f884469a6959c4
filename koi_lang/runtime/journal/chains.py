"""The known state of a program from a chain of branches: the last run first, then its ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from koi_lang.events import ModelAnswered, ModelAsked, ModelFailed
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import COMPLETIONS, lasting_entries, unsafe_effects
from koi_lang.runtime.replay.comparison import is_same_input
from koi_lang.runtime.replay.location import Path

# What counts of a location: where one of these is new in a branch, later steps there are not those of its parent.
COUNTING = COMPLETIONS | {"begun", ModelAsked.type, ModelAnswered.type, ModelFailed.type}
OUTCOMES = frozenset({"done", "failed"})


def known_entries(runs: Iterable[Sequence[JournalEntry]]) -> list[JournalEntry]:
    """The entries that a further branch can reuse from a run, and from unfinished ancestors.

    A run that stopped early has not reached all that its parent knew. What it did not come to still counts, but for
    what follows from something that it has done anew.

    Args:
        runs: all entries of each, the last run first, then the one that it is a branch of, and so on.
    """
    known: list[JournalEntry] = []
    entered: set[Path] = set()
    renewed: set[Path] = set()
    for entries in runs:
        lasting = lasting_entries(entries)
        names = {_name(entry) for entry in known}
        known += [
            entry for entry in lasting if _name(entry) not in names and _still_counts(entry.path, entered, renewed)
        ]
        entered |= {prefix for entry in lasting for prefix in _prefixes(entry.path)}
        anew = (entry for entry in lasting if entry.kind in COUNTING and not entry.data.get("recalled"))
        renewed |= {prefix for entry in anew for prefix in _prefixes(entry.path)}
    return known


def effects_left(runs: Iterable[Sequence[JournalEntry]]) -> list[JournalEntry]:
    """The unrepeatable effects of those runs, each once: their beginnings and ends."""
    left: list[JournalEntry] = []
    for entries in runs:
        lasting, begun = lasting_entries(entries), [entry for entry in left if entry.kind == "begun"]
        more = [effect for effect in unsafe_effects(lasting) if not _take(begun, effect)]
        paths = {effect.path for effect in more}
        left += more + [entry for entry in lasting if entry.kind in OUTCOMES and entry.path in paths]
    return left


def _take(begun: list[JournalEntry], effect: JournalEntry) -> bool:
    """Whether an effect is one of some, which counts no more then."""
    name, fields = effect.data.get("intent"), effect.data.get("fields")
    same = (each for each in begun if each.data.get("intent") == name)
    found = next((each for each in same if is_same_input(each.data.get("fields"), fields)), None)
    if found is not None:
        begun.remove(found)
    return found is not None


def _name(entry: JournalEntry) -> tuple[str, Path]:
    """The unique key of a valid entry: an action has one outcome, done or failed."""
    return ("outcome" if entry.kind in OUTCOMES else entry.kind), entry.path


def _prefixes(path: Path) -> list[Path]:
    """The whole run, and the locations of a path from the outside in."""
    return [path[:length] for length in range(len(path) + 1)]


def _still_counts(path: Path, entered: set[Path], renewed: set[Path]) -> bool:
    """Whether the innermost location of a path that later runs have entered went there as it had gone before."""
    innermost = next((prefix for prefix in reversed(_prefixes(path)) if prefix in entered), None)
    return innermost is None or innermost not in renewed
