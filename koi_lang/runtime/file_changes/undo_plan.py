"""The plan of an undo: the action for each path of a run, or the reason to leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from koi_lang.runtime.file_changes.path_states import PathContent, PathState, content_at
from koi_lang.runtime.file_changes.run_changes import RecordedChange, is_change
from koi_lang.runtime.snapshots.store import SnapshotStore
from koi_lang.system.open_folders import OpenFolders

SECOND_NS = 1_000_000_000
CHANGED_SINCE = "somebody else has changed it since"
BESIDE = "a command of the run `%s` was under way, too, and may have made the change"
NOT_KEPT = "what was there is not kept any more"
CANNOT = "what was there could not be kept"


@dataclass(frozen=True, slots=True)
class PathUndo:
    """The undo of one path.

    Attributes:
        now: what is there.
        target: what is to be there; what is there, where nothing can be put back.
        refusal: why less is put back than was changed, as a clause; empty where all of it is.
        left: what the run had left where somebody else has changed that.
        is_unsure: whether the run was interrupted while it changed this, so that somebody else may have done it.
        by: what made the changes, the latest first.
        entry: what was changed behind it is put back then.
    """

    file: str
    now: PathContent
    target: PathState | None
    refusal: str = ""
    left: PathState | None = None
    is_unsure: bool = False
    by: Sequence[str] = ()
    entry: int = 0

    @property
    def has_change(self) -> bool:
        """Whether something is put back."""
        return self.now.state != self.target


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The undo of a run.

    Attributes:
        entry: the changes behind it are put back; 0 for all.
    """

    entry: int
    paths: Sequence[PathUndo]

    @property
    def to_change(self) -> list[PathUndo]:
        """The paths where something is put back."""
        return [each for each in self.paths if each.has_change]

    @property
    def refusals(self) -> list[PathUndo]:
        """The paths where something is not put back."""
        return [each for each in self.paths if each.refusal]


def plan_undo(
    changes: Mapping[str, Sequence[RecordedChange]], entry: int, folders: OpenFolders, store: SnapshotStore
) -> UndoPlan:
    """The plan to restore paths to an entry. Raises OSError."""
    paths = []
    for file, chain in changes.items():
        later = [change for change in chain if change.n > entry and is_change(change)]
        if later:
            undo = _plan_path(file, later, content_at(folders, file), store)
            paths.append(undo if undo.refusal else replace(undo, entry=entry))
    return UndoPlan(entry, paths)


def _plan_path(file: str, later: Sequence[RecordedChange], now: PathContent, store: SnapshotStore) -> PathUndo:
    """Go back from the present state, the latest change first, as far as each change left that state."""
    by = tuple(dict.fromkeys(change.by for change in reversed(later) if change.by))
    state = now.state
    left = None
    is_unsure = False
    if state == later[0].before:
        return PathUndo(file, now, state, by=by)
    for change in reversed(later):
        if state == change.before:
            continue
        if not _has_left(change, state, now):
            # Where the end of a command was never told, nobody knows what it had left.
            refusal, left = CHANGED_SINCE, change.after if change.until is None else state
        elif change.beside:
            refusal, left = BESIDE % change.beside, change.after
        else:
            refusal = _lack(change.before, store)
        if refusal:
            return PathUndo(file, now, state, refusal, left, is_unsure, by, change.n)
        state, is_unsure = change.before, is_unsure or change.until is not None
    return PathUndo(file, now, state, is_unsure=is_unsure, by=by)


def _has_left(change: RecordedChange, state: PathState | None, now: PathContent) -> bool:
    """Whether a change has left a state, or may have left it when it was interrupted."""
    if change.until is None:
        return state == change.after
    return state != now.state or now.changed_ns <= change.until * SECOND_NS


def _lack(before: PathState | None, store: SnapshotStore) -> str:
    """Why something cannot be put back; empty where it can."""
    if before is not None and before.is_of == "other":
        return CANNOT
    is_missing = before is not None and before.is_of == "file" and not store.has_content(before.content)
    return NOT_KEPT if is_missing else ""
