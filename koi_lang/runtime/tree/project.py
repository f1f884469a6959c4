"""A project with its store of snapshots: the functions of `std/workspace`, for one thread.

Every folder is opened below the one before it, so that nothing is written through a link. Whatever ends this in the
middle leaves a tree of which some is as it was and some as it is to be; doing it again does the rest.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, reason
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.concurrency.stoppable_threads import Stop
from koi_lang.runtime.guards.file_names import runner_of
from koi_lang.runtime.guards.paths import require_no_code, running_files
from koi_lang.runtime.guards.write_quota import count_bytes
from koi_lang.runtime.snapshots.manifest import Manifest
from koi_lang.runtime.snapshots.retention import make_room
from koi_lang.runtime.snapshots.store import DamagedContentError, SnapshotStore, write_file
from koi_lang.runtime.tree.comparing import Differences, TreeComparison
from koi_lang.runtime.tree.taking import Room, StoreFullError, Taker
from koi_lang.runtime.tree.walking import Tree, Walker
from koi_lang.settings import ProjectSettings
from koi_lang.settings.project import most_of_snapshots
from koi_lang.system.open_folders import OpenFolders, name_of, parent_of

# So much of what is left out is listed.
MAX_LISTED = 500
MEGABYTE = 1_000_000
HOW_TO_MAKE_ROOM = (
    "Remove old runs with `koi runs delete`, have `.gitignore` name what need not be kept, or give `megabytes` in"
    " `[snapshots]` of `koi.toml` a larger number."
)


@dataclass(frozen=True, slots=True)
class ProjectTree:
    """A project.

    Attributes:
        folder: with all links resolved.
        stop: raises where nobody waits any more.
        settings: of the project, which say how much may be kept.
    """

    folder: Path
    stop: Stop
    settings: ProjectSettings

    def snapshot(self, run: str) -> dict[str, Any]:
        """Keep the tree for a run. Raises AgentError, OSError."""
        store, most_bytes = SnapshotStore.of(self.folder), most_of_snapshots(self.settings)
        try:
            id, manifest, tree = self._take(store, run, most_bytes)
        except StoreFullError:
            make_room(self.folder, store, most_bytes, self.stop)
            try:
                id, manifest, tree = self._take(store, run, most_bytes)
            except StoreFullError as error:
                message = f"snapshots of this project would take more than {most_bytes // MEGABYTE:,} MB"
                raise AgentError(message, help=HOW_TO_MAKE_ROOM) from error
        skipped = [{"path": path, "why": why} for path, why in sorted(tree.left_out.items())]
        return {
            "id": id,
            "files": len(manifest.files),
            "bytes": sum(file.size for file in manifest.files.values()),
            "skipped": skipped[:MAX_LISTED],
            "skippedCount": len(skipped),
        }

    def _take(self, store: SnapshotStore, run: str, most_bytes: int) -> tuple[str, Manifest, Tree]:
        with store.hold_lock(shared=True, stop=self.stop), OpenFolders(self.folder) as folders:
            room = Room(store, most_bytes)
            manifest, tree = Taker(folders, self._walker(), room, self.stop).take(store.latest())
            return store.keep(run, manifest, room.require), manifest, tree

    def changes(self, snapshot: str) -> dict[str, Any]:
        """The differences since a snapshot. Raises AgentError, OSError."""
        store = SnapshotStore.of(self.folder)
        with store.hold_lock(shared=True, stop=self.stop), OpenFolders(self.folder) as folders:
            found = self._differences(store.manifest(snapshot), folders)
        return {"added": found.added, "changed": found.changed, "removed": found.removed, "left": _list(found.left)}

    def restore(self, snapshot: str, role: Role | None) -> dict[str, Any]:
        """Put back the tree of a snapshot, on behalf of an agent with a role. Raises AgentError, OSError."""
        store = SnapshotStore.of(self.folder)
        with store.hold_lock(shared=False, stop=self.stop), OpenFolders(self.folder) as folders:
            manifest = store.manifest(snapshot)
            found = self._differences(manifest, folders)
            self._require_allowed(store, manifest, found, role)
            done = Restorer(folders, store, manifest, found).restore(self.stop)
        return {"written": sorted(done.changed + done.removed), "removed": done.added, "left": _list(done.left)}

    def _differences(self, manifest: Manifest, folders: OpenFolders) -> Differences:
        return TreeComparison(manifest, self._walker(), folders).differences()

    def _walker(self) -> Walker:
        root = f"{str(self.folder).casefold()}/"
        running = (path for path in running_files() if path.startswith(root))
        return Walker(self.folder, frozenset(path.removeprefix(root) for path in running), self.stop)

    def _require_allowed(self, store: SnapshotStore, manifest: Manifest, found: Differences, role: Role | None) -> None:
        """Raise where an answer of a model may not write so much, or a role change code. Nothing is changed yet."""
        for path in (*found.added, *found.changed, *found.removed):
            if not path.endswith("/"):
                why = runner_of(path.split("/"), self.folder / path) or _script_reason(store, manifest, path)
                require_no_code(path, why, role)
        written = [manifest.files[path].size for path in (*found.changed, *found.removed) if path in manifest.files]
        count_bytes(sum(written), "what `restore` puts back")


def _script_reason(store: SnapshotStore, manifest: Manifest, path: str) -> str | None:
    """The reason why a file would be code once it is restored, under any name."""
    kept = manifest.files.get(path)
    if kept is None or not kept.mode & 0o111:
        return None
    try:
        return "a shell runs" if store.get(kept.digest).startswith(b"#!") else None
    except DamagedContentError:
        return None  # it cannot be put back, which is told then


def _list(left: dict[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in left.items()]


NOT_EMPTY = "not empty"
# What the owner of a folder needs in order to change what is in it.
OWN = stat.S_IRWXU


class Restorer:
    """Restores a tree; the caller holds the exclusive lock of the store.

    Args:
        found: what is different now.
    """

    def __init__(self, folders: OpenFolders, store: SnapshotStore, manifest: Manifest, found: Differences) -> None:
        self._folders = folders
        self._store = store
        self._manifest = manifest
        self._found = found
        self._staged: dict[str, str] = {}
        # Folders that were opened up, with the modes they are to have again.
        self._modes: dict[str, int] = {}

    def restore(self, stop: Stop) -> Differences:
        """Restore everything; returns the differences, with the paths left alone. Raises AgentError, OSError."""
        self._store.clear_staging()
        try:
            self._stage(stop)
            self._remove_added()
            self._make_folders()
            self._place()
            self._set_modes()
        finally:
            with suppress(OSError):
                self._store.clear_staging()
        return self._found.in_order()

    def _stage(self, stop: Stop) -> None:
        """Make all files and links that are to be put back, in the store."""
        for path in (*self._found.changed, *self._found.removed):
            stop()
            with _naming(path):
                if path in self._manifest.links:
                    staged = self._staged[path] = self._store.staging_path()
                    os.symlink(self._manifest.links[path], staged)
                elif path in self._manifest.files:
                    kept = self._manifest.files[path]
                    self._staged[path] = self._store.stage(self._store.get(kept.digest), kept.mode)

    def _remove_added(self) -> None:
        for path in reversed(self._found.added):
            with _naming(path), self._leaving_what_is_not_empty(path), suppress(FileNotFoundError):
                held = self._open_up(parent_of(path.rstrip("/")))
                if path.endswith("/"):
                    self._remove_folder(path[:-1], held)
                else:
                    os.unlink(name_of(path), dir_fd=held)

    def _make_folders(self) -> None:
        for path in (*self._found.changed, *self._found.removed):
            if path.endswith("/"):
                with _naming(path):
                    self._make_folder(path[:-1])

    def _make_folder(self, path: str) -> None:
        held, name = self._open_up(parent_of(path)), name_of(path)
        self._modes[path] = self._manifest.folders[path]
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode):
                return
            os.unlink(name, dir_fd=held)
        os.mkdir(name, OWN, dir_fd=held)

    def _place(self) -> None:
        for path, staged in self._staged.items():
            with _naming(path), self._leaving_what_is_not_empty(path):
                self._put(staged, path, self._open_up(parent_of(path)))

    def _put(self, staged: str, path: str, held: int) -> None:
        name = name_of(path)
        try:
            os.rename(staged, name, dst_dir_fd=held)
        except IsADirectoryError:
            self._remove_folder(path, held)
            os.rename(staged, name, dst_dir_fd=self._open_up(parent_of(path)))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(staged, path, held)

    def _copy(self, staged: str, path: str, held: int) -> None:
        """Put something into a folder that is on another disk than the store."""
        beside = f".koi-{os.urandom(8).hex()}"
        if path in self._manifest.links:
            os.symlink(self._manifest.links[path], beside, dir_fd=held)
        else:
            kept = self._manifest.files[path]
            write_file(beside, self._store.get(kept.digest), kept.mode, folder=held)
        os.rename(beside, name_of(path), src_dir_fd=held, dst_dir_fd=held)

    def _remove_folder(self, path: str, held: int) -> None:
        os.rmdir(name_of(path), dir_fd=held)
        self._modes.pop(path, None)
        self._folders.forget()

    def _open_up(self, path: str) -> int:
        """A folder whose entries can be changed."""
        held = self._folders.open(path)
        mode = stat.S_IMODE(os.fstat(held).st_mode)
        if mode & OWN != OWN:
            os.fchmod(held, mode | OWN)
            self._modes.setdefault(path, mode)
        return held

    def _set_modes(self) -> None:
        for path in sorted(self._modes, reverse=True):
            with _naming(path):
                os.fchmod(self._folders.open(path), self._modes[path])

    @contextmanager
    def _leaving_what_is_not_empty(self, path: str) -> Iterator[None]:
        """A context for something that a folder may keep from being removed or put into its place."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._found.left[path] = NOT_EMPTY
            for each in (self._found.added, self._found.changed, self._found.removed):
                if path in each:
                    each.remove(path)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """A context whose errors name their path."""
    try:
        yield
    except DamagedContentError as error:
        help = "Nothing was changed; another snapshot may hold it."
        raise DamagedContentError(f"what was kept of `{path}` is damaged", help=help) from error
    except OSError as error:
        help = "Restore once more when that is mended; what was put back stays."
        raise AgentError(f"`{path}` cannot be put back: {reason(error)}", help=help) from error
