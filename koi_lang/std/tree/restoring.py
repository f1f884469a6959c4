"""Differences to none: contents are made whole beside the project first, then everything is put into its place.

Every folder is opened below the one before it, so that nothing is written through a link. Whatever ends this in the
middle leaves a tree of which some is as it was and some as it is to be; doing it again does the rest.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from koi_lang.runtime.snapshots.manifest import Manifest
from koi_lang.runtime.snapshots.store import SnapshotStore, write_file
from koi_lang.std.tree.comparing import Differences
from koi_lang.std.tree.folders import OpenFolders, name_of, parent_of
from koi_lang.std.tree.walking import Stop

NOT_EMPTY = "not empty"
# What the owner of a folder needs in order to change what is in it.
OWN = stat.S_IRWXU


class Restorer:
    """Puts a tree back, for who holds the lock of the store alone.

    Args:
        found: what is different now.
    """

    def __init__(self, folders: OpenFolders, store: SnapshotStore, manifest: Manifest, found: Differences) -> None:
        self._folders, self._store, self._manifest, self._found = folders, store, manifest, found
        self._staged: dict[str, str] = {}
        # Folders that were opened up, with the modes they are to have again.
        self._modes: dict[str, int] = {}

    def restore(self, stop: Stop) -> Differences:
        """Put everything back; gives what was different, with what is left. Raises AgentError, OSError."""
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
            if path in self._manifest.links:
                staged = self._staged[path] = self._store.staging_path()
                os.symlink(self._manifest.links[path], staged)
            elif path in self._manifest.files:
                kept = self._manifest.files[path]
                self._staged[path] = self._store.stage(self._store.get(kept.digest), kept.mode)

    def _remove_added(self) -> None:
        for path in reversed(self._found.added):
            inner = path.rstrip("/")
            held = self._open_up(parent_of(inner))
            try:
                with suppress(FileNotFoundError):
                    if path == inner:
                        os.unlink(name_of(path), dir_fd=held)
                    else:
                        self._remove_folder(inner, held)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self._leave(path)

    def _make_folders(self) -> None:
        for path in (*self._found.changed, *self._found.removed):
            if path.endswith("/"):
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
            held = self._open_up(parent_of(path))
            try:
                self._put(staged, path, held)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self._leave(path)

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
            os.fchmod(self._folders.open(path), self._modes[path])

    def _leave(self, path: str) -> None:
        """Note that something keeps what is to be put in its place, or removed, from that."""
        self._found.left[path] = NOT_EMPTY
        for each in (self._found.added, self._found.changed, self._found.removed):
            if path in each:
                each.remove(path)
