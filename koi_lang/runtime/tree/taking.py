"""Snapshots of a project: unchanged files are not read again, changing ones until they are stable."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from koi_lang.runtime.concurrency.stoppable_threads import Stop
from koi_lang.runtime.snapshots.manifest import FileStatus, KeptFile, Manifest
from koi_lang.runtime.snapshots.store import SnapshotStore
from koi_lang.runtime.tree.reading import ATTEMPTS, read_file
from koi_lang.runtime.tree.walking import CHANGING, Tree, Walker
from koi_lang.system.open_folders import OpenFolders

# How soon after a change another one may leave the same times: where a system tells parts of seconds, and where not.
FINE_NS, COARSE_NS = 100_000_000, 2_100_000_000
SECOND_NS = 1_000_000_000
# Between two looks at how much the store holds, in bytes that were added.
MEASURED_EVERY = 16_000_000


class StoreFullError(Exception):
    """There is no room for a snapshot."""


@dataclass(slots=True)
class Room:
    """How much may be added to a store.

    Attributes:
        most_bytes: that it may hold.
        left_bytes: what may be added before it is measured again.
    """

    store: SnapshotStore
    most_bytes: int
    left_bytes: int = 0

    def require(self, size: int) -> None:
        """Raise StoreFullError where there is no room for another content."""
        if self.left_bytes < size:
            room = self.most_bytes - self.store.used_bytes()
            if room < size:
                raise StoreFullError("there is no room for the snapshot")
            self.left_bytes = min(room, MEASURED_EVERY + size)
        self.left_bytes -= size


class Taker:
    """Takes a snapshot; the caller holds the lock of the store."""

    def __init__(self, folders: OpenFolders, walker: Walker, room: Room, stop: Stop) -> None:
        self._folders = folders
        self._walker = walker
        self._room = room
        self._stop = stop
        self._store = room.store
        self._has_read = False
        self._refused: dict[str, tuple[FileStatus, str]] = {}

    def take(self, known: Manifest) -> tuple[Manifest, Tree]:
        """The present tree with its contents stored, as a manifest.

        Args:
            known: what was there some time ago.

        Raises:
            StoreFullError: there is no room.
            AgentError: the rules of what is ignored cannot be read.
            OSError: something else cannot be read or written.
        """
        begun, files = time.time_ns(), known.files
        for _ in range(ATTEMPTS):
            tree = self._walker.walk(self._folders.root)
            files = self._keep_all(tree, files)
            if not self._has_read:
                break
        else:
            tree = self._walker.walk(self._folders.root)
            files = {path: file for path, file in files.items() if file.status == tree.files.get(path)}
            for path in tree.files.keys() - files.keys():
                tree.left_out[path] = self._refusal(path, tree) or CHANGING
        kept = {path: _forget_if_recent(file, begun) for path, file in files.items()}
        return Manifest(kept, tree.links, tree.folders, tree.own_left_out(), tree.ignores), tree

    def _keep_all(self, tree: Tree, known: Mapping[str, KeptFile]) -> dict[str, KeptFile]:
        files: dict[str, KeptFile] = {}
        self._has_read = False
        for path in sorted(tree.files):
            before = known.get(path)
            is_same = before is not None and before.status == tree.files[path]
            if is_same and before is not None and self._store.holds(before.digest, before.size):
                files[path] = before
            elif why := self._refusal(path, tree):
                tree.left_out[path] = why
            else:
                self._keep(path, tree, files)
        return files

    def _refusal(self, path: str, tree: Tree) -> str:
        """Why a file was left out when it was read last, where it is still the same."""
        status, why = self._refused.get(path, (None, ""))
        return why if status == tree.files[path] else ""

    def _keep(self, path: str, tree: Tree, files: dict[str, KeptFile]) -> None:
        self._stop()
        self._has_read = True
        found = read_file(self._folders, path, is_whole=self._walker.is_whole)
        if found.status is not None:
            digest = self._store.put(found.data, self._room.require)
            files[path] = KeptFile(found.status.mode, found.status.size, digest, found.status)
        elif found.why:
            tree.left_out[path] = found.why
            self._refused[path] = (tree.files[path], found.why)


def _forget_if_recent(file: KeptFile, begun_ns: int) -> KeptFile:
    """A file without a status that a change after it was read could have, too."""
    status = file.status
    return file if status is None or _is_past(status, begun_ns) else file._replace(status=None)


def _is_past(status: FileStatus, begun_ns: int) -> bool:
    return status.touched + (FINE_NS if status.touched % SECOND_NS else COARSE_NS) < begun_ns
