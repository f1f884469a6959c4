"""A plan to files that are as they were: each is made whole beside its place, by no link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from koi_lang.errors import AgentError, reason, undone_by
from koi_lang.runtime.file_changes.path_states import BEHIND_LINK, PathState, content_at
from koi_lang.runtime.file_changes.undo_plan import CHANGED_SINCE, PathUndo, UndoPlan
from koi_lang.runtime.snapshots.store import SnapshotStore, write_file
from koi_lang.system.open_folders import OpenFolders, name_of, parent_of

NOT_EMPTY = "other files are in it"


@dataclass(frozen=True, slots=True)
class UndoneFile:
    """The result of one path.

    Attributes:
        refusal: why it is not as it is to be, as a clause; empty where it is.
        is_kept_folder: whether it is a folder that stays because somebody has put something into it.
    """

    undo: PathUndo
    refusal: str = ""
    is_kept_folder: bool = False


class Undoer:
    """Restores paths; the caller keeps others from changing files meanwhile."""

    def __init__(self, folders: OpenFolders, store: SnapshotStore) -> None:
        self._folders, self._store = folders, store
        # Folders that are made, with the modes that they get once all is in them.
        self._modes: dict[str, int] = {}

    def put_back(self, plan: UndoPlan) -> Iterator[UndoneFile]:
        """Restore one path after the other; failures are reported, and the others continue."""
        for each in _in_order(plan.to_change):
            self._folders.forget()
            yield self._outcome(each)
        self._folders.forget()
        for path, mode in reversed(self._modes.items()):
            with suppress(OSError):
                os.fchmod(self._folders.open(path), mode)

    def _outcome(self, undo: PathUndo) -> UndoneFile:
        try:
            return self._put_back(undo)
        except AgentError as error:
            return UndoneFile(undo, error.message)
        except OSError as error:
            return UndoneFile(undo, reason(error))

    def _put_back(self, undo: PathUndo) -> UndoneFile:
        now = content_at(self._folders, undo.file).state
        if now == undo.target:
            return UndoneFile(undo)
        if now != undo.now.state and not _is_folder(now, undo.now.state):
            return UndoneFile(undo, CHANGED_SINCE)
        if now is not None and _must_go(now, undo.target) and not self._remove(undo.file, now):
            return UndoneFile(undo, "" if undo.target is None else NOT_EMPTY, is_kept_folder=undo.target is None)
        if undo.target is not None:
            self._place(undo.file, undo.target)
        return UndoneFile(undo)

    def _remove(self, file: str, now: PathState) -> bool:
        """Remove the entry at a path; returns whether that was possible."""
        held = self._folders.open(parent_of(file))
        if now.is_of != "folder":
            os.unlink(name_of(file), dir_fd=held)
            return True
        try:
            os.rmdir(name_of(file), dir_fd=held)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def _place(self, file: str, target: PathState) -> None:
        held, name = self._open_parent(file), name_of(file)
        if target.is_of == "folder":
            with suppress(FileExistsError):
                os.mkdir(name, stat.S_IRWXU, dir_fd=held)
            self._modes[file] = target.mode
            return
        beside = f".koi-{os.urandom(8).hex()}"
        with undone_by(os.unlink, beside, dir_fd=held):
            if target.is_of == "link":
                os.symlink(target.content, beside, dir_fd=held)
            else:
                write_file(beside, self._store.get(target.content), target.mode, folder=held)
            os.rename(beside, name, src_dir_fd=held, dst_dir_fd=held)

    def _open_parent(self, file: str) -> int:
        """The folder of a path, made where it is missing."""
        try:
            return self._folders.open(parent_of(file))
        except FileNotFoundError:
            inner = parent_of(file)
            os.mkdir(name_of(inner), dir_fd=self._open_parent(inner))
            return self._folders.open(inner)
        except NotADirectoryError as error:
            raise AgentError(f"its folder is {BEHIND_LINK}") from error


def _must_go(now: PathState, target: PathState | None) -> bool:
    """Whether the present entry cannot be replaced atomically."""
    return target is None or (now.is_of == "folder") != (target.is_of == "folder")


def _is_folder(now: PathState | None, then: PathState | None) -> bool:
    return now is not None and then is not None and now.is_of == then.is_of == "folder"


def _in_order(paths: Sequence[PathUndo]) -> list[PathUndo]:
    """Removals first, inner paths before outer ones, then creations, outer paths first."""
    going = [each for each in paths if each.target is None]
    coming = [each for each in paths if each.target is not None]
    going.sort(key=lambda each: each.file.count("/"), reverse=True)
    coming.sort(key=lambda each: each.file.count("/"))
    return [*going, *coming]
