"""The undo of a run: its journal and its project to a plan, and the plan carried out and told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from koi_lang.errors import AgentError, KoiError, reason
from koi_lang.events import FileRestored
from koi_lang.runtime.file_changes.change_recorder import LOCK, PAUSE_S
from koi_lang.runtime.file_changes.content_keeper import ContentKeeper, never_stop
from koi_lang.runtime.file_changes.path_states import PathContent, PathState, data_of
from koi_lang.runtime.file_changes.run_changes import (
    MAX_END_S,
    RecordedChange,
    TreeDifferences,
    changes_beside,
    changes_in,
)
from koi_lang.runtime.file_changes.tree_watch import TreeWatch, find_differences
from koi_lang.runtime.file_changes.undo_plan import PathUndo, UndoPlan, plan_undo
from koi_lang.runtime.file_changes.undoing import Undoer, UndoneFile
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.snapshots.store import SnapshotStore, snapshots_folder
from koi_lang.runtime.tree.taking import StoreFullError
from koi_lang.settings import ProjectSettings
from koi_lang.settings.project import most_of_snapshots
from koi_lang.system.file_locks import open_lock, try_lock
from koi_lang.system.open_folders import OpenFolders

MAX_WAIT_S = 30.0
Note = Callable[[FileRestored], None]


class RunUndo:
    """The restorable changes of one run.

    Args:
        settings: of the project, which say how much may be kept.

    Attributes:
        project: the folder of the run's files.
    """

    def __init__(self, project: Path, run: str, entries: Sequence[JournalEntry], settings: ProjectSettings) -> None:
        self.project = project
        self._run = run
        self._settings = settings
        self._changes = changes_in(entries, self._find_differences)

    def _find_differences(self, entry: JournalEntry) -> TreeDifferences:
        """The paths that differ from the beginning of a command; none where that is unknown. Raises AgentError.

        What other runs have left like this is theirs.
        """
        with self._open() as (_, store):
            id = str(entry.data.get("tree"))
            kept = store.kept_tree(self._run, id)
            if kept is None:
                return TreeDifferences((), entry.ts)
            found = find_differences(self.project.resolve(), kept)
            others = changes_beside(self.project, self._run, entry.ts)
            left = {change.file: change.after for _, change in others.changes}
            states = [
                (each.file, each.before) for each in found if each.file not in left or left[each.file] != each.now.state
            ]
            seen_s = store.tree_path(self._run, id).stat().st_mtime
            watch = TreeWatch(kept, id, entry.path, entry.ts, frozenset())
            built_on = [
                RecordedChange(entry.n, change.file, watch.undisturbed_state(change.file), change.before, entry.path)
                for at_s, change in watch.note_others(others)
                if at_s <= seen_s + MAX_END_S
            ]
            return TreeDifferences(states, seen_s, built_on)

    def plan(self, entry: int = 0) -> UndoPlan:
        """The plan to restore files to an entry; changes nothing. Raises AgentError."""
        if not self._changes:
            return UndoPlan(entry, [])
        with self._open() as (folders, store):
            return plan_undo(self._changes, entry, folders, store)

    def carry_out(self, plan: UndoPlan, note: Note) -> list[UndoneFile]:
        """Carry out a plan and return the result of each path. Raises AgentError.

        Args:
            note: writes to the journal of the run what was put back, as soon as it is.
        """
        self._keep_unsure(plan)
        with self._open() as (folders, store), self._alone():
            done = []
            for each in Undoer(folders, store).put_back(plan):
                done.append(each)
                if not each.refusal:
                    note(_restoration(each.undo))
            for undo in plan.paths:
                if not undo.has_change and not undo.refusal:
                    note(_restoration(undo))
        return done

    def contents(self, then: PathState | None, now: PathContent) -> tuple[bytes, bytes] | None:
        """The contents of a path then and now, empty for nothing; None where one of them is no file, or not kept."""
        if any(state is not None and state.is_of != "file" for state in (then, now.state)):
            return None
        with self._open() as (_, store):
            try:
                return b"" if then is None else store.get(then.content), now.data
            except AgentError:
                return None

    @contextmanager
    def _open(self) -> Iterator[tuple[OpenFolders, SnapshotStore]]:
        """A context in which nothing is removed from the store. Raises AgentError."""
        try:
            store = SnapshotStore.of(self.project)
            with store.hold_lock(shared=True, stop=never_stop), OpenFolders(self.project.resolve()) as folders:
                yield folders, store
        except OSError as error:
            raise AgentError(f"the project cannot be looked at: {reason(error)}") from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A context in which no action changes files of the project. Raises AgentError."""
        held = open_lock(snapshots_folder(self.project) / LOCK)
        try:
            until = time.monotonic() + MAX_WAIT_S
            while not try_lock(held):
                if time.monotonic() > until:
                    help = "Wait until it has ended, or end it first."
                    raise AgentError("another run is changing files of this project", help=help)
                time.sleep(PAUSE_S)
            yield
        finally:
            os.close(held)

    def _keep_unsure(self, plan: UndoPlan) -> None:
        """Store contents of unknown origin before they are replaced, where there is room."""
        unsure = [each.now.data for each in plan.to_change if each.is_unsure and each.now.data]
        with suppress(StoreFullError, KoiError, OSError):
            ContentKeeper(self.project, self._run, most_of_snapshots(self._settings)).keep(*unsure)


def _restoration(undo: PathUndo) -> FileRestored:
    return FileRestored(undo.file, undo.entry, data_of(undo.now.state), data_of(undo.target))
