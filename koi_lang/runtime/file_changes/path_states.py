"""The state of a path of the project: a file, a link, a folder or nothing, read without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from koi_lang.runtime.snapshots.manifest import DIGEST, MODE
from koi_lang.system.open_folders import FILE, REPLACED, OpenFolders, name_of, parent_of

# Larger files are not kept, in bytes.
MAX_BYTES = 50_000_000
Kind = Literal["file", "link", "folder", "other"]
KINDS = ("file", "link", "folder", "other")
# Why something is of the kind `other`.
TOO_LARGE, SPECIAL = f"larger than {MAX_BYTES // 1_000_000} MB", "no file, link or folder"
BEHIND_LINK, UNREADABLE = "behind a link", "unreadable"


@dataclass(frozen=True, slots=True)
class PathState:
    """The state of a path.

    Attributes:
        is_of: `other` is what can be neither kept nor put back.
        content: the digest of a file, SHA-256; what a link leads to; why it is `other`.
        mode: as `chmod` sets it; 0 for links.
    """

    is_of: Kind
    content: str = ""
    mode: int = 0

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"is": self.is_of, "content": self.content, "mode": self.mode}


def data_of(state: PathState | None) -> dict[str, Any] | None:
    """The JSON form of the state of a path; None for nothing."""
    return None if state is None else state.as_data()


def state_of(data: Any) -> PathState | None:
    """The state of a path from its JSON form; None for nothing. Raises ValueError for an invalid form."""
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise ValueError("it has another form")
    kind = data.get("is")
    content = data.get("content")
    mode = data.get("mode")
    if kind not in KINDS or not isinstance(content, str) or type(mode) is not int or not 0 <= mode <= MODE:
        raise ValueError("it has another form")
    if (kind == "file" and not DIGEST.fullmatch(content)) or (kind == "link" and not can_be_path(content)):
        raise ValueError("it has another form")
    return PathState(kind, content, mode)


def can_be_path(text: str) -> bool:
    """Whether the system could have a path of that text; bytes that are not UTF-8 are halves of surrogate pairs."""
    try:
        return text != "" and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class PathContent:
    """The state of a path, with its content.

    Attributes:
        state: None for nothing.
        data: of a file.
        changed_ns: when it was changed last, in nanoseconds; 0 for nothing.
    """

    state: PathState | None
    data: bytes = b""
    changed_ns: int = 0


NOTHING = PathContent(None)


def content_at(folders: OpenFolders, path: str) -> PathContent:
    """The content of a path now. Raises OSError where it cannot be read."""
    try:
        held = folders.open(parent_of(path))
    except FileNotFoundError:
        return NOTHING
    except PermissionError:
        return PathContent(PathState("other", UNREADABLE))
    except OSError as error:
        if error.errno in REPLACED:
            return PathContent(PathState("other", BEHIND_LINK)) if _is_behind_link(folders, path) else NOTHING
        raise
    return _content_in(held, name_of(path))


def _is_behind_link(folders: OpenFolders, path: str) -> bool:
    """Whether a folder on the way to a path is a link, rather than a file with nothing below it."""
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        around = "/".join(parts[:count])
        try:
            found = os.stat(name_of(around), dir_fd=folders.open(parent_of(around)), follow_symlinks=False)
        except OSError:
            return True
        if not stat.S_ISDIR(found.st_mode):
            return stat.S_ISLNK(found.st_mode)
    return False


def _content_in(held: int, name: str) -> PathContent:
    try:
        found = os.stat(name, dir_fd=held, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=held)
            return PathContent(PathState("link", target), changed_ns=found.st_mtime_ns)
        if stat.S_ISDIR(found.st_mode):
            return PathContent(PathState("folder", mode=found.st_mode & MODE), changed_ns=found.st_mtime_ns)
        if not stat.S_ISREG(found.st_mode):
            return PathContent(PathState("other", SPECIAL), changed_ns=found.st_mtime_ns)
        return _file_in(held, name)
    except FileNotFoundError:
        return NOTHING
    except PermissionError:
        return PathContent(PathState("other", UNREADABLE))


def _file_in(held: int, name: str) -> PathContent:
    file = os.open(name, FILE, dir_fd=held)
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return PathContent(PathState("other", SPECIAL), changed_ns=found.st_mtime_ns)
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return PathContent(PathState("other", TOO_LARGE), changed_ns=found.st_mtime_ns)
    return PathContent(PathState("file", sha256(data).hexdigest(), found.st_mode & MODE), data, found.st_mtime_ns)
