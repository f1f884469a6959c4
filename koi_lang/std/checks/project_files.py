"""Files of a project and reports of its tools, none of which is trusted: they may be pipes, links, or endless."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from koi_lang.system.open_folders import FILE

# How many files and folders of a project are looked at.
MAX_ENTRIES = 100_000
MAX_SETTINGS_BYTES = 1_000_000
# Folders with what is not the project's own.
FOREIGN = frozenset(("node_modules", "venv", "env", "site-packages", "__pycache__", "build", "dist", "target"))


def read_regular_file(path: str | Path, most_bytes: int, *, follows: bool = True) -> bytes:
    """The beginning of a file: one byte more than requested shows that it goes on. Raises OSError for other entries.

    Args:
        follows: whether it may be a link.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) if follows else FILE
    with open(os.open(path, flags), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError("it is no file")
        return opened.read(most_bytes + 1)


def read_setting(file: Path) -> str:
    """The text of a file with settings; empty where there is none."""
    try:
        return read_regular_file(file, MAX_SETTINGS_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def has_name(folder: Path, is_meant: Callable[[str], bool]) -> bool:
    """Whether a project has a file whose name is meant."""
    return any(map(is_meant, _names(folder)))


def has_setting(folder: Path, is_meant: Callable[[str], bool]) -> bool:
    """Whether a file whose name is meant stands in the folder of a project itself."""
    return any(is_meant(name) for _, _, names in islice(os.walk(folder), 1) for name in names)


def _names(folder: Path) -> Iterator[str]:
    """The names of files in a project, a bounded number; hidden and foreign ones are left out."""
    left = MAX_ENTRIES
    for _, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in FOREIGN)
        yield from names
        left -= len(folders) + len(names)
        if left < 0:
            return
