"""Locks between processes, as POSIX and Windows have them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from koi_lang.errors import KoiError
from koi_lang.system.file_locks import FAR, locked_folder, try_lock


class Msvcrt(ModuleType):
    """What Windows offers instead: locks of bytes, whose holder alone may lock them."""

    LK_LOCK, LK_NBLCK = 1, 2
    held: ClassVar[set[tuple[int, int]]] = set()

    @classmethod
    def locking(cls, descriptor: int, mode: int, count: int) -> None:
        """Lock bytes of a file from where it stands. Raises OSError."""
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if place in cls.held:
            raise OSError(36, "Resource deadlock avoided")
        cls.held.add(place)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Msvcrt]]:
    """A system with `msvcrt` and without `fcntl`."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt("msvcrt"))
    yield Msvcrt
    Msvcrt.held.clear()


def test_only_one_holds_a_lock(tmp_path: Path) -> None:
    """Two openings of a file are two holders; shared locks go together, and end with the file."""
    path = tmp_path / "file"
    with open(path, "wb") as one, open(path, "rb") as two, open(path, "rb") as three:
        shared = [try_lock(each.fileno(), shared=True) for each in (two, three)]
        assert ([True, True], False) == (shared, try_lock(one.fileno()))

    with open(path, "rb") as again:
        assert try_lock(again.fileno())


def test_windows_locks_a_byte_behind_the_end(windows: type[Msvcrt], tmp_path: Path) -> None:
    """What is read and written of the file is not locked, and goes on where it was."""
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with open(path, "r+b", buffering=0) as one, open(path, "rb") as two:
        one.seek(3)

        assert (True, False) == (try_lock(one.fileno()), try_lock(two.fileno()))
        assert (b"tent", {FAR}) == (one.read(), {place for _, place in windows.held})


def test_a_folder_is_entered_by_one(windows: type[Msvcrt], tmp_path: Path) -> None:
    """Where locks are those of Windows, too."""
    with locked_folder(tmp_path):
        assert len(windows.held) == 1


def test_a_system_without_locks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody goes on as if a file were locked."""
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setitem(sys.modules, name, None)

    with open(tmp_path / "file", "wb") as file, pytest.raises(KoiError, match="files cannot be locked on this system"):
        try_lock(file.fileno())
