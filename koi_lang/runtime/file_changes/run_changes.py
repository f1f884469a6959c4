"""The entries of a journal to the changes that its run has made of each path, without those that were put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from koi_lang.errors import JournalError
from koi_lang.events import FileChanged, FileKept, FileRestored, TreeCompared, TreeKept
from koi_lang.runtime.file_changes.path_states import PathState, can_be_path, state_of
from koi_lang.runtime.guards.file_names import as_systems_see
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import in_order, lines
from koi_lang.runtime.journal.store import is_running, journal_paths
from koi_lang.runtime.replay.location import Path as Location
from koi_lang.system.open_folders import CLOCK_STEP_S, STATE_FOLDER

# What no action changes by its path, so that no journal can have it changed.
NEVER = frozenset({".git", STATE_FOLDER})
# How long an action that was interrupted may have gone on once it was told what it is about to change.
MAX_ACTION_S = 10.0
# How long a command may have gone on behind the last time at which its run was there.
MAX_END_S = 5.0
# How long the journal of a run with a command is silent.
MAX_SILENCE_S = 3600.0
ENDS = ("done", "failed")
# The entries by which other runs are asked for their changes.
FILE_ENTRIES = (TreeKept.type, TreeCompared.type, FileChanged.type, FileRestored.type)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change of a path, as its run has told it.

    Attributes:
        n: the entry from which on it counts: the end of the action that made it, where there is one.
        after: None for nothing.
        place: where in the run it was made; nothing else was.
        by: what made it, in a few words; empty where that is not known.
        until: for a change that was interrupted, the latest time that it can have been made, in seconds since the
            epoch; then `after` says nothing. None for one that was told to its end.
        beside: another run that may have made it instead; empty for none.
    """

    n: int
    file: str
    before: PathState | None
    after: PathState | None
    place: Location
    by: str = ""
    until: float | None = None
    beside: str = ""


class TreeDifferences(NamedTuple):
    """The possible changes by an interrupted command.

    Attributes:
        states: the paths that are not as they were, each with what was there.
        seen_s: the last time at which its run is known to have been there, in seconds since the epoch.
        built_on: the changes that other runs have found and changed again meanwhile.
    """

    states: Sequence[tuple[str, PathState | None]]
    seen_s: float
    built_on: Sequence[RecordedChange] = ()


# The entry about a list of all files to what is not as it was then.
FindDifferences = Callable[[JournalEntry], TreeDifferences]


def changes_in(entries: Sequence[JournalEntry], differences: FindDifferences) -> dict[str, list[RecordedChange]]:
    """The changes of each path, the earliest first; paths in the order in which they were changed first.

    Args:
        differences: says what a command may have changed that was interrupted.
    """
    found: dict[str, list[RecordedChange]] = {}
    ends = {entry.path: entry for entry in entries if entry.kind in ENDS}
    over = {entry.path for entry in entries if entry.kind == TreeCompared.type}
    undone = [(entry.n, entry.data.get("entry")) for entry in entries if entry.kind == FileRestored.type]
    for entry in entries:
        if entry.kind == TreeKept.type and entry.path not in over:
            # What differs after an undo of the command is not from it.
            is_undone = any(n > entry.n and type(to) is int and to < entry.n for n, to in undone)
            for each in () if is_undone else _of_interrupted(entry, differences):
                found.setdefault(each.file, []).append(_within_action(each, ends))
        change = _change_of(entry)
        if change is None:
            continue
        chain = found.setdefault(change.file, [])
        if entry.kind == FileRestored.type:
            chain[:] = [each for each in chain if each.n <= change.n]
            continue
        chain[:] = [each for each in chain if each.place != change.place]
        chain.append(_within_action(change, ends))
    return {file: chain for file, chain in found.items() if any(map(is_change, chain))}


def _of_interrupted(entry: JournalEntry, differences: FindDifferences) -> Iterator[RecordedChange]:
    """The possible changes by a command whose run was killed before its report."""
    seconds = entry.data.get("seconds")
    found = differences(entry)
    yield from found.built_on
    until = (
        min(max(entry.ts, found.seen_s), entry.ts + (seconds if isinstance(seconds, int | float) else 0.0)) + MAX_END_S
    )
    for file, before in found.states:
        if is_in_project(file):
            yield RecordedChange(entry.n, file, before, None, entry.path, until=until)


def _change_of(entry: JournalEntry) -> RecordedChange | None:
    """The change in an entry; None where it holds none that can be relied on."""
    data = entry.data
    if entry.kind not in (FileKept.type, FileChanged.type, FileRestored.type) or not is_in_project(data.get("file")):
        return None
    try:
        before, after = state_of(data.get("before")), state_of(data.get("after"))
    except ValueError:
        return None
    file = str(data["file"])
    if entry.kind == FileRestored.type:
        to = data.get("entry")
        return RecordedChange(to, file, before, after, entry.path) if type(to) is int else None
    until = entry.ts + MAX_ACTION_S if entry.kind == FileKept.type else None
    return RecordedChange(entry.n, file, before, after, entry.path, until=until, beside=str(data.get("beside", "")))


@dataclass(frozen=True, slots=True)
class ChangesBeside:
    """The changes that other runs of a project have recorded since a moment.

    Attributes:
        changes: in their order, with the time in seconds since the epoch; without those that this run may have made.
        shared: the paths that either this run or another one has changed, each with the other one.
        at_work: a run whose command was never reported to its end; empty for none.
    """

    changes: Sequence[tuple[float, RecordedChange]] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    at_work: str = ""


def changes_beside(folder: Path, run: str, since_s: float, begun_before: Collection[str] = ()) -> ChangesBeside:
    """The changes by other runs; of their journals no entries are read but those about files.

    Args:
        folder: of the project.
        run: whose journal is left out.
        since_s: the moment, in seconds since the epoch.
        begun_before: runs that were under way then.
    """
    changes: list[tuple[float, RecordedChange, str]] = []
    at_work = ""
    for path in journal_paths(folder):
        with suppress(JournalError, OSError):
            is_late = path.stat().st_mtime >= since_s - CLOCK_STEP_S
            if path.stem == run or not (is_late or path.stem in begun_before):
                continue
            ordered = in_order(list(lines(path, kinds=FILE_ENTRIES)))
            entries = [line.entry for line in ordered if line.entry is not None]
            over = {entry.path for entry in entries if entry.kind == TreeCompared.type}
            if any(entry.kind == TreeKept.type and entry.path not in over for entry in entries):
                at_work = path.stem
            for entry in entries:
                change = _change_of(entry) if entry.ts >= since_s else None
                if change is not None:
                    changes.append((entry.ts, change, path.stem))
    changes.sort(key=itemgetter(0))
    shared = {change.file: other for _, change, other in changes if change.beside == run}
    return ChangesBeside([(at_s, change) for at_s, change, _ in changes if change.beside != run], shared, at_work)


def running_runs(folder: Path, run: str) -> frozenset[str]:
    """The other runs of a project that are under way; those without an entry in the last hour are left out."""
    running = []
    for path in journal_paths(folder):
        with suppress(JournalError, OSError):
            if path.stem != run and path.stat().st_mtime >= time.time() - MAX_SILENCE_S and is_running(path):
                running.append(path.stem)
    return frozenset(running)


def is_change(change: RecordedChange) -> bool:
    """Whether a change has left something else, or may have."""
    return change.before != change.after or change.until is not None


def is_in_project(file: Any) -> bool:
    """Whether a text is a path below the project that may be put back."""
    if not isinstance(file, str) or not can_be_path(file):
        return False
    parts = PurePosixPath(file).parts
    if "/".join(parts) != file or not {"", ".", "..", "/"}.isdisjoint(parts):
        return False
    return NEVER.isdisjoint(map(as_systems_see, parts))


def _within_action(change: RecordedChange, ends: Mapping[Location, JournalEntry]) -> RecordedChange:
    """A change as one of the action around it, which is done, or not, as a whole."""
    around = (ends.get(change.place[:length]) for length in range(len(change.place) - 1, 0, -1))
    end = next((entry for entry in around if entry is not None), None)
    if end is None or end.n < change.n:
        return change
    return replace(change, n=end.n, by=str(end.data.get("intent", "")))


def without_file_changes(entries: Sequence[JournalEntry], n: int) -> list[JournalEntry]:
    """Some entries without the effects behind the n-th that have changed files and nothing else."""
    files = {entry.path[:-1] for entry in entries if entry.kind == FileChanged.type}
    files -= {entry.path[:-1] for entry in entries if entry.kind == TreeKept.type}
    return [entry for entry in entries if entry.n <= n or entry.kind != "begun" or entry.path not in files]
