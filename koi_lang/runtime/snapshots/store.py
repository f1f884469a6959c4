"""The store of a project's snapshots: contents by their digest, lists by their run, and the lock that runs share.

```
.koi/snapshots/lock, gate      shared while contents are read or added, held alone while any are removed
.koi/snapshots/objects/ab/…    contents
.koi/snapshots/runs/RUN/…      a list for each snapshot of a run
.koi/snapshots/runs/RUN/tree-…   a list of all files, while a command may change them
.koi/snapshots/runs/RUN/contents   what else a run needs, a digest a line
.koi/snapshots/changing        held by whoever changes a file by an action
.koi/snapshots/latest          the list of the last snapshot, so that the next one need not read everything
.koi/snapshots/staging/…       what is not whole yet
```
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from koi_lang.errors import AgentError, reason
from koi_lang.runtime.snapshots.manifest import DIGEST, Manifest, digests_in, tree_digest
from koi_lang.system.file_locks import open_lock, try_lock
from koi_lang.system.open_folders import STATE_FOLDER, make_state_folder

# An id: the run, and what its list is made of.
SNAPSHOT = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})-([0-9a-f]{16})")
MAX_WAIT_S = 60.0
PAUSE_S = 0.02
# How often the folder of a run is made anew for what is kept while others delete it.
MAX_TRIES = 20
# The list of what a run needs beside its snapshots.
CONTENTS = "contents"
# Before the names of lists of all files, which no program can restore.
TREE = "tree-"
TREE_ID = re.compile(r"[0-9a-f]{16}")
Stop = Callable[[], None]


class DamagedContentError(AgentError):
    """A content of the store does not match its name."""


def snapshots_folder(folder: Path) -> Path:
    """Where the snapshots of programs that are run in a folder are."""
    return folder / STATE_FOLDER / "snapshots"


@dataclass(frozen=True, slots=True)
class SnapshotStore:
    """The snapshots of a project.

    Attributes:
        folder: `.koi/snapshots`.
    """

    folder: Path

    @staticmethod
    def of(project: Path) -> SnapshotStore:
        """That of a project, made where there is none yet. Raises AgentError."""
        store = SnapshotStore(snapshots_folder(project))
        try:
            make_state_folder(store.folder, 0o700)
            for name in ("objects", "runs", "staging"):
                (store.folder / name).mkdir(mode=0o700, exist_ok=True)
            _write_once(store.folder / ".gitignore", b"*\n")
        except OSError as error:
            raise unkept(error) from error
        return store

    @property
    def lists(self) -> Path:
        """Where each run has a folder for the lists of its snapshots."""
        return self.folder / "runs"

    @contextmanager
    def hold_lock(self, *, shared: bool, stop: Stop) -> Iterator[None]:
        """A shared context for additions, or an exclusive one. Raises AgentError.

        Args:
            stop: is called while it waits; raises where nobody wants that any more.
        """
        until = time.monotonic() + MAX_WAIT_S
        with self._open_lock("lock") as held:
            with self._open_lock("gate") as gate:  # who waits to be alone lets nobody else in
                _wait_for(gate, False, until, stop)
                _wait_for(held, shared, until, stop)
            yield

    @contextmanager
    def _open_lock(self, name: str) -> Iterator[int]:
        try:
            held = open_lock(self.folder / name)
        except OSError as error:
            raise unkept(error) from error
        try:
            yield held
        finally:
            os.close(held)

    # ------------------------------------------------------------ contents

    def holds(self, digest: str, size: int) -> bool:
        """Whether a content is there, as far as its size tells."""
        try:
            return os.stat(self._object(digest)).st_size == size
        except OSError:
            return False

    def has_content(self, digest: str) -> bool:
        """Whether a content is in the store, of any size."""
        return DIGEST.fullmatch(digest) is not None and os.path.isfile(self._object(digest))

    def put(self, data: bytes, require_room: Callable[[int], None]) -> str:
        """Store a content and return its digest. Raises AgentError, and as `require_room` does."""
        digest = sha256(data).hexdigest()
        if not self.holds(digest, len(data)):
            require_room(len(data))
            self._write(data, self._object(digest))
        return digest

    def _write(self, data: bytes, path: str) -> None:
        """Make a file that is whole from its beginning. Raises AgentError."""
        beside = self.staging_path()
        try:
            write_file(beside, data)
            _rename(beside, path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(beside)
            raise unkept(error) from error

    def get(self, digest: str) -> bytes:
        """A content. Raises DamagedContentError where it is not there as it was kept."""
        path = self._object(digest)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise DamagedContentError(f"a kept content cannot be read: {reason(error)}") from error
        if sha256(data).hexdigest() != digest:
            with suppress(OSError):
                os.unlink(path)  # so that the next snapshot keeps it again
            raise DamagedContentError("a kept content is damaged")
        return data

    def name_content(self, run: str, digest: str) -> None:
        """Have a run refer to a content; the caller holds the lock. Raises AgentError."""
        try:
            held = os.open(self.lists / run / CONTENTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(held, "wb", buffering=0) as file:
                file.write(f"{digest}\n".encode())
        except OSError as error:
            raise unkept(error) from error

    def used_bytes(self) -> int:
        """How much all contents and lists take. Raises OSError."""
        return sum(size for _, size in (*self._files("runs"), *self.objects()))

    def objects(self) -> Iterator[tuple[Path, int]]:
        """The contents with their sizes in bytes. Raises OSError."""
        return self._files("objects")

    def _files(self, kept: str) -> Iterator[tuple[Path, int]]:
        """The files in the folders of a folder, with sizes in bytes, without ones removed meanwhile. Raises OSError."""
        for folder in os.scandir(self.folder / kept):
            with suppress(FileNotFoundError, NotADirectoryError):
                for entry in os.scandir(folder.path):
                    with suppress(FileNotFoundError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False).st_size

    def stage(self, data: bytes, mode: int) -> str:
        """A file that is whole, to be moved to where it belongs; gives its path. Raises OSError."""
        path = self.staging_path()
        write_file(path, data, mode)
        return path

    def staging_path(self) -> str:
        """A new name for an incomplete file."""
        return os.path.join(self.folder, "staging", os.urandom(12).hex())

    def clear_staging(self) -> None:
        """Remove the remains of killed runs; the caller holds the exclusive lock. Raises OSError."""
        for entry in os.scandir(self.folder / "staging"):
            os.unlink(entry.path)

    def _object(self, digest: str) -> str:
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise DamagedContentError("a list of kept files is damaged")
        return os.path.join(self.folder, "objects", digest[:2], digest[2:])

    # ------------------------------------------------------------ lists

    def keep(self, run: str, manifest: Manifest, require_room: Callable[[int], None]) -> str:
        """Keep the list of a snapshot, also as the latest one; gives its id. Raises as `put` does."""
        data = manifest.to_bytes()
        require_room(len(data))
        name = tree_digest(data)
        for path in (self.lists / run / name, self.folder / "latest"):
            self._write(data, str(path))
        return f"{run}-{name}"

    def latest(self) -> Manifest:
        """The list of the last snapshot of any run; an empty one where there is none."""
        try:
            return Manifest.of_bytes((self.folder / "latest").read_bytes())
        except (OSError, ValueError):
            return Manifest()

    def manifest(self, snapshot: str) -> Manifest:
        """The list of a snapshot. Raises AgentError for an invalid id, a missing one, or a damaged list."""
        found = SNAPSHOT.fullmatch(snapshot)
        if found is None:
            shown = snapshot if len(snapshot) <= 100 and snapshot.isprintable() else f"{snapshot[:100]!r}…"
            raise AgentError(f"`{shown}` is no snapshot", help="Give what `snapshot()` gave, or its `id`.")
        try:
            data = (self.lists / found[1] / found[2]).read_bytes()
        except OSError as error:
            help = "Snapshots are removed with the journal of their run, and where there is no room for more."
            raise AgentError(f"there is no snapshot `{snapshot}`", help=help) from error
        try:
            if tree_digest(data) == found[2]:
                return Manifest.of_bytes(data)
        except ValueError as error:
            raise _damage_error(snapshot) from error
        raise _damage_error(snapshot)

    def keep_tree(self, run: str, manifest: Manifest, require_room: Callable[[int], None]) -> str:
        """Keep a list of all files for a run, also as the latest one; gives its id. Raises as `put` does."""
        data = manifest.to_bytes()
        id = tree_digest(data)
        path = self.tree_path(run, id)
        if not path.exists():
            require_room(len(data))
            for each in (path, self.folder / f"{TREE}latest"):
                self._write(data, str(each))
        return id

    def tree_path(self, run: str, id: str) -> Path:
        """The file of such a list, which is as new as the latest moment at which its command was under way."""
        return self.lists / run / f"{TREE}{id}"

    def kept_tree(self, run: str, id: str) -> Manifest | None:
        """Such a list; None where it is not there, or damaged."""
        try:
            data = self.tree_path(run, id).read_bytes() if TREE_ID.fullmatch(id) else b""
            return Manifest.of_bytes(data, is_whole=True) if tree_digest(data) == id else None
        except (OSError, ValueError):
            return None

    def latest_tree(self) -> Manifest:
        """The latest list of all files of any run; an empty one where there is none."""
        try:
            return Manifest.of_bytes((self.folder / f"{TREE}latest").read_bytes(), is_whole=True)
        except (OSError, ValueError):
            return Manifest()

    def remove_trees(self, run: str, but: Collection[str]) -> None:
        """Remove the lists of all files that a run needs no more."""
        for path in (self.lists / run).glob(f"{TREE}*"):
            if path.name.removeprefix(TREE) not in but:
                path.unlink(missing_ok=True)

    # ------------------------------------------------------------ removing

    def sweep(self) -> None:
        """Remove unreferenced contents; the caller holds the exclusive lock. Raises OSError."""
        self.clear_staging()
        wanted: set[object] = set()
        for path, _ in self._files("runs"):
            # Its run may be deleted meanwhile, for which nobody waits.
            with suppress(ValueError, FileNotFoundError):
                data = path.read_bytes()
                is_named = path.name == CONTENTS
                wanted.update(data.decode("ascii", "replace").split() if is_named else digests_in(data))
        for path, _ in self.objects():
            if path.parent.name + path.name not in wanted:
                path.unlink(missing_ok=True)


def unkept(error: OSError) -> AgentError:
    """That something cannot be kept, and why."""
    help = "Make room, or have `.koi` be a folder that can be written."
    return AgentError(f"snapshots cannot be kept in `.koi/snapshots`: {reason(error)}", help=help)


def delete_snapshots(project: Path, run: str) -> bool:
    """Remove the lists of a run; returns whether there were any. Their contents are swept later."""
    folder = snapshots_folder(project) / "runs" / run
    if not SNAPSHOT.fullmatch(f"{run}-{'0' * 16}") or not folder.is_dir() or folder.is_symlink():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def sweep_snapshots(project: Path) -> None:
    """Remove the contents that no snapshot needs any more, if there is a store. Raises AgentError."""
    if not snapshots_folder(project).is_dir():
        return
    store = SnapshotStore.of(project)
    with store.hold_lock(shared=False, stop=lambda: None):
        try:
            store.sweep()
        except OSError as error:
            raise unkept(error) from error


def _wait_for(held: int, shared: bool, until: float, stop: Stop) -> None:
    # It asks again and again, since nobody could end a thread that the system lets wait.
    while not try_lock(held, shared=shared):
        if time.monotonic() > until:
            help = "Wait until it has ended, or end it first."
            raise AgentError("another run has been busy with snapshots of this project for a minute", help=help)
        stop()
        time.sleep(PAUSE_S)


def _damage_error(snapshot: str) -> AgentError:
    return AgentError(f"the list of the snapshot `{snapshot}` is damaged", help="Take another snapshot.")


def _write_once(path: Path, data: bytes) -> None:
    with suppress(FileExistsError), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def write_file(path: str, data: bytes, mode: int = 0o600, *, folder: int | None = None) -> None:
    """Make a new file. Raises OSError.

    Args:
        folder: an open one that the path begins at.
    """
    held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        at = 0
        with memoryview(data) as left:
            while at < len(left):
                at += os.write(held, left[at:])
        if mode != 0o600:
            os.fchmod(held, mode)
    finally:
        os.close(held)


def _rename(beside: str, path: str) -> None:
    """Move a complete file to its place, whose folder may be missing, or be removed by the deletion of its run."""
    for _ in range(MAX_TRIES):
        with suppress(FileNotFoundError):
            os.replace(beside, path)
            return
        with suppress(FileExistsError):
            os.makedirs(os.path.dirname(path), mode=0o700)
    os.replace(beside, path)
