"""One file of a project to its content, read again where it changes meanwhile."""

from __future__ import annotations

import os
from typing import NamedTuple

from koi_lang.runtime.snapshots.manifest import FileStatus
from koi_lang.runtime.tree.walking import CHANGING, MAX_FILE_BYTES, UNREADABLE, left_out_for, status_of
from koi_lang.system.open_folders import FILE, REPLACED, OpenFolders, name_of, parent_of

# So often a file is read before it counts as one that changes all the time.
ATTEMPTS = 3


class ReadFile(NamedTuple):
    """The result of reading a file.

    Attributes:
        status: None where there is no such file any more, or it is left out.
        why: it is left out, if it is.
    """

    data: bytes = b""
    status: FileStatus | None = None
    why: str = ""


def read_file(folders: OpenFolders, path: str, *, is_whole: bool = False) -> ReadFile:
    """The content of a file, which has not changed while it was read. Raises OSError.

    Args:
        is_whole: as a walker has it.
    """
    try:
        held = os.open(name_of(path), FILE, dir_fd=folders.open(parent_of(path)))
    except PermissionError:
        return ReadFile(why=UNREADABLE)
    except OSError as error:
        if error.errno in REPLACED:
            return ReadFile()
        raise
    try:
        return _read(held, is_whole=is_whole)
    finally:
        os.close(held)


def _read(held: int, *, is_whole: bool) -> ReadFile:
    after = os.fstat(held)
    for _ in range(ATTEMPTS):
        before = after
        if why := left_out_for(before, is_whole=is_whole):
            return ReadFile(why=why)
        data = _content(held, before.st_size)
        after = os.fstat(held)
        if status_of(before) == status_of(after) and len(data) == after.st_size:
            return ReadFile(data, status_of(after))
    return ReadFile(why=CHANGING)


def _content(held: int, size: int) -> bytes:
    """The content of a file, with one byte more than expected where it has grown."""
    data = os.pread(held, size + 1, 0)
    while data and len(data) <= min(size, MAX_FILE_BYTES):
        more = os.pread(held, size + 1 - len(data), len(data))
        if not more:
            break
        data += more
    return data
