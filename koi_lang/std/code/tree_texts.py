"""The texts of many files of a tree, one after the other; other files are skipped, and counted."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from koi_lang.system.open_folders import FILE, REPLACED, OpenFolders, name_of, parent_of

# Larger files are skipped, in bytes.
MAX_BYTES = 5_000_000
BINARY = "binary"
ENCODING = "encoding"
LARGE = "large"
UNREADABLE = "unreadable"
MARK = b"\xef\xbb\xbf"


class TreeTexts:
    """Reads files below open folders, without following links.

    Args:
        skipped: counts those that are skipped, by the reason.
    """

    def __init__(self, folders: OpenFolders, skipped: Counter[str]) -> None:
        self._folders, self._skipped = folders, skipped

    def text(self, path: str, is_wanted: Callable[[bytes], bool]) -> str:
        r"""The text of a file, whose lines end with `\n`; empty where it is skipped, not wanted, or not there any more.

        Args:
            is_wanted: says by its bytes whether it may be of interest; if not, it is not counted as skipped, either.
        """
        data = self._read(path)
        if not is_wanted(data):
            return ""
        if b"\0" in data:
            self._skipped[BINARY] += 1
            return ""
        try:
            text = data.removeprefix(MARK).decode()
        except UnicodeDecodeError:
            self._skipped[ENCODING] += 1
            return ""
        return text.replace("\r\n", "\n") if b"\r\n" in data else text

    def _read(self, path: str) -> bytes:
        try:
            held = os.open(name_of(path), FILE, dir_fd=self._folders.open(parent_of(path)))
        except OSError as error:
            if error.errno not in REPLACED:
                self._skipped[UNREADABLE] += 1
            return b""  # else it was a file a moment ago
        with open(held, "rb", buffering=0) as file:
            about = os.fstat(held)
            if not stat.S_ISREG(about.st_mode):
                return b""
            data = file.read(MAX_BYTES + 1) or b"" if about.st_size <= MAX_BYTES else b""
        if max(len(data), about.st_size) > MAX_BYTES:
            self._skipped[LARGE] += 1
            return b""
        return data


def is_large(file: Path) -> bool:
    """Whether a file would be skipped for its size."""
    try:
        return os.stat(file, follow_symlinks=False).st_size > MAX_BYTES
    except OSError:
        return False  # it was there a moment ago
