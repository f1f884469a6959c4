"""The content of one snapshot, and its form on disk: a line for its id, and one that only saves time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

FORMAT = 1
# What no paths hold that can be kept, one behind the other: names that are empty or begin with a dot.
NOT_KEPT = ("\0\0", "\0/", "/\0", "//", "\0.", "/.")
# The same where hidden names count, too.
NEVER_KEPT = ("\0\0", "\0/", "/\0", "//", "\0.\0", "\0./", "/.\0", "/./", "\0..\0", "\0../", "/..\0", "/../")
# What `chmod` sets.
MODE = 0o7777
DIGEST = re.compile(r"[0-9a-f]{64}")


class FileStatus(NamedTuple):
    """The metadata of a file; while they are equal, so is the content.

    Attributes:
        changed: when the content was changed, in nanoseconds.
        touched: when anything of it was changed, which no program can set.
    """

    mode: int
    size: int
    changed: int
    touched: int
    inode: int


UNKNOWN = FileStatus(0, 0, 0, 0, 0)


class KeptFile(NamedTuple):
    """A file of a snapshot.

    Attributes:
        digest: of its content, SHA-256.
        status: when it was read; None where a later change may look the same.
    """

    mode: int
    size: int
    digest: str
    status: FileStatus | None = None


# As `_make`, for many.
_status_of = partial(tuple.__new__, FileStatus)
_file_of = partial(tuple.__new__, KeptFile)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot.

    Attributes:
        files: by their paths from the folder of the project.
        links: symbolic links with what they lead to.
        folders: with their modes.
        left_out: what was not kept though no rule says so, with the reason.
        ignores: the `.gitignore` files that counted: what stands before their folder above the project, the folder in
            it, and their text.
    """

    files: Mapping[str, KeptFile] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    ignores: Sequence[tuple[str, str, str]] = ()

    def to_bytes(self) -> bytes:
        """Its form on disk."""
        files = {path: self.files[path] for path in sorted(self.files)}
        tree = {
            "format": FORMAT,
            "files": list(files),
            "modes": [file.mode for file in files.values()],
            "sizes": [file.size for file in files.values()],
            "digests": [file.digest for file in files.values()],
            "links": dict(sorted(self.links.items())),
            "folders": dict(sorted(self.folders.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "ignores": [list(each) for each in self.ignores],
        }
        found = [file.status or UNKNOWN for file in files.values()]
        statuses = [[status[column] for status in found] for column in range(2, len(UNKNOWN))]
        return b"\n".join(json.dumps(part, separators=(",", ":")).encode() for part in (tree, statuses)) + b"\n"

    @staticmethod
    def of_bytes(data: bytes, *, is_whole: bool = False) -> Manifest:
        """Parse its form on disk. Raises ValueError where that is damaged, or names a forbidden path.

        Args:
            is_whole: whether it may hold hidden files, too.
        """
        first, _, second = data.partition(b"\n")
        try:
            tree, statuses = json.loads(first), json.loads(second)
            return _manifest_of(tree, statuses, NEVER_KEPT if is_whole else NOT_KEPT)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("it has another form") from error


def _manifest_of(tree: Mapping[str, Any], statuses: Sequence[Sequence[Any]], refused: Sequence[str]) -> Manifest:
    paths, modes, sizes, digests = (tree[name] for name in ("files", "modes", "sizes", "digests"))
    links = tree["links"]
    folders = tree["folders"]
    ignores = tree["ignores"]
    found = map(_status_of, zip(modes, sizes, *statuses, strict=True))
    known = (status if status.inode else None for status in found)
    files = dict(zip(paths, map(_file_of, zip(modes, sizes, digests, known, strict=True)), strict=True))
    if tree["format"] != FORMAT or not _can_be_kept([*files, *links, *folders], refused):
        raise ValueError("it names something that cannot be kept")
    if not all(isinstance(mode, int) and 0 <= mode <= MODE for mode in {*modes, *folders.values()}):
        raise ValueError("it has a mode that there is none of")
    if not all(isinstance(size, int) and size >= 0 for size in {*sizes}) or not isinstance(tree["left_out"], dict):
        raise ValueError("it has another form")
    if not all(isinstance(target, str) and target and "\0" not in target for target in links.values()):
        raise ValueError("it has a link to nothing")
    return Manifest(
        files, links, folders, tree["left_out"], [(before, folder, text) for before, folder, text in ignores]
    )


def _can_be_kept(paths: Sequence[str], refused: Sequence[str]) -> bool:
    """Whether all paths stay below the project and none is forbidden."""
    text = "\0".join(("", *paths, ""))
    return text.count("\0") == len(paths) + 1 and not any(part in text for part in refused)


def tree_digest(data: bytes) -> str:
    """The name of a snapshot within its run, equal for equal trees."""
    return sha256(data.partition(b"\n")[0]).hexdigest()[:16]


def digests_in(data: bytes) -> list[Any]:
    """The contents that a snapshot needs, by its form on disk. Raises ValueError."""
    tree = json.loads(data.partition(b"\n")[0])
    if not isinstance(tree, dict):
        raise ValueError("it has another form")
    return list(tree.get("digests", ()))
