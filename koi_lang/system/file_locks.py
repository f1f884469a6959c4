"""Locks of files between processes, on POSIX and on Windows; the system gives them free when their process ends."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.system.open_folders import UNFOLLOWED

# Where the byte stands that is locked on Windows, where a locked byte cannot be read: the last that it can lock there.
FAR = 0x7FFF_FFFE
# Between two attempts to lock a file, in seconds. A command that a killed process had just started holds a lock of it
# until it is executed, and a reader that looks whether a file is locked holds a shared one for an instant.
PAUSES_S = (0.01, 0.04, 0.15, 0.3)
# What stands for a folder where folders cannot be opened.
FOLDER_LOCK = ".lock"


def open_lock(path: Path) -> int:
    """The descriptor of a file that is there to be locked, by this user alone. Raises OSError, also for a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | UNFOLLOWED, 0o600)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed, unless another process has; says whether it could be.

    Args:
        shared: whether others may lock it so, too; Windows knows no such locks, so that the first one has it.
    """
    try:
        _lock(descriptor, shared=shared)
    except BlockingIOError:
        return False
    return True


def try_lock_patiently(descriptor: int) -> bool:
    """Lock an open file until it is closed, with a few attempts within half a second; says whether it could be."""
    for pause_s in PAUSES_S:
        if try_lock(descriptor):
            return True
        time.sleep(pause_s)
    return try_lock(descriptor)


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file until it is closed, once nobody else has."""
    _lock(descriptor, waits=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """A context that only one process enters at a time. Raises OSError."""
    try:
        held = os.open(folder, os.O_RDONLY)
    except PermissionError:  # what Windows says of folders
        held = os.open(folder / FOLDER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        wait_for_lock(held)
        yield
    finally:
        os.close(held)


def sync_folder(folder: Path) -> None:
    """Have the names of new files on disk, too; Windows does so by itself. Raises OSError."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        if os.name == "nt":
            return
        raise
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@dataclass(frozen=True, slots=True)
class LockedRecord:
    """The notes of a process, in a file that is locked as long as it lives; another process takes them over then.

    Attributes:
        opened: its descriptor.
    """

    path: Path
    opened: int

    @staticmethod
    def create(folder: Path, subject: str) -> LockedRecord:
        """An empty one about a subject, which is a part of a file name. Raises OSError."""
        folder.mkdir(0o700, parents=True, exist_ok=True)
        path = folder / f"{subject}-{secrets.token_hex(8)}.json"
        record = LockedRecord(path, open_lock(path))
        try_lock(record.opened)
        return record

    @staticmethod
    def take_over(folder: Path, subject: str) -> Iterator[LockedRecord]:
        """Those about a subject whose processes have ended; the caller closes each."""
        for path in sorted(folder.glob(f"{subject}-*.json")):
            with suppress(OSError):
                opened = os.open(path, os.O_RDWR | UNFOLLOWED)
                if try_lock(opened):
                    yield LockedRecord(path, opened)
                else:
                    os.close(opened)

    def write(self, state: Any) -> None:
        """Replace the content by a value that JSON can hold. Raises OSError."""
        os.ftruncate(self.opened, 0)
        os.pwrite(self.opened, json.dumps(state).encode(), 0)

    def read(self) -> Any:
        """The stored value; None where it cannot be read."""
        with suppress(OSError, ValueError):
            return json.loads(os.pread(self.opened, os.fstat(self.opened).st_size, 0))
        return None

    def close(self, *, is_kept: bool = False) -> None:
        """Remove it, unless it is kept, and give up its lock."""
        if not is_kept:
            with suppress(OSError):
                self.path.unlink()
        os.close(self.opened)


def _lock(descriptor: int, *, shared: bool = False, waits: bool = False) -> None:
    """Lock an open file. Raises BlockingIOError where another process has it and nobody waits, and KoiError."""
    for name in ("fcntl", "msvcrt"):
        try:
            module = import_module(name)
        except ImportError:
            continue
        if name == "msvcrt":
            _lock_windows(module, descriptor, waits)
        else:
            module.flock(descriptor, (module.LOCK_SH if shared else module.LOCK_EX) | (0 if waits else module.LOCK_NB))
        return
    raise KoiError("files cannot be locked on this system", help="Run with `--no-record`.")


def _lock_windows(msvcrt: Any, descriptor: int, waits: bool) -> None:
    """A lock of one byte, which is found by the position in the file; waiting for it ends after 10 s, so it goes on."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, FAR, os.SEEK_SET)
    try:
        while not _try_lock_windows(msvcrt, descriptor, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK):
            if not waits:
                raise BlockingIOError
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


def _try_lock_windows(msvcrt: Any, descriptor: int, mode: int) -> bool:
    try:
        msvcrt.locking(descriptor, mode, 1)
    except OSError:
        return False
    return True
