"""The serialization of a cache on disk: texts by texts, and nothing that is unpickled.

`diskcache` unpickles what its files say is a pickle, which runs whatever somebody has put there.
"""

from __future__ import annotations

import re
from typing import Any

from diskcache import Disk  # type: ignore[import-untyped]
from diskcache.core import MODE_RAW, MODE_TEXT, UNKNOWN  # type: ignore[import-untyped]

OWN_FILE = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val")


class TextDisk(Disk):  # type: ignore[misc]
    """Stores texts; other values on disk count as absent."""

    def put(self, key: Any) -> Any:
        """The key in the table. Raises TypeError for a value that is no text."""
        return super().put(_required_text(key))

    def get(self, key: Any, raw: Any) -> Any:
        """A key from the table. Raises OSError for a value that is no text."""
        return _found_text(super().get(key, True))

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> Any:
        """Store a value in the table, or in a file if it is long. Raises TypeError for a value that is no text."""
        return super().store(_required_text(value), False, key)

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
        """The value of a row. Raises OSError for a foreign value or place: the cache takes it for absent."""
        if mode not in (MODE_RAW, MODE_TEXT) or (mode == MODE_TEXT and not _is_own_file(filename)):
            raise OSError("an entry of the cache is no text")
        try:
            return _found_text(super().fetch(mode, filename, value, False))
        except UnicodeDecodeError as error:
            raise OSError("an entry of the cache is no text") from error

    def remove(self, file_path: Any) -> None:
        """Delete the file of a row; a name that is none of ours stays."""
        if _is_own_file(file_path):
            super().remove(file_path)


def _is_own_file(name: Any) -> bool:
    return isinstance(name, str) and OWN_FILE.fullmatch(name) is not None


def _required_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the cache holds texts, no {type(value).__name__}")
    return value


def _found_text(value: Any) -> str:
    if not isinstance(value, str):
        raise OSError("an entry of the cache is no text")
    return value
