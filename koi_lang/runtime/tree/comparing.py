"""The comparison of a snapshot with the present tree: differences, and protected paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from koi_lang.runtime.snapshots.manifest import FileStatus, KeptFile, Manifest
from koi_lang.runtime.tree.gitignore import IgnoreLevel, is_ignored
from koi_lang.runtime.tree.reading import read_file
from koi_lang.runtime.tree.walking import HARD_LINK, LARGE, SPECIAL, UNREADABLE, Tree, Walker, level_of
from koi_lang.system.open_folders import OpenFolders
from koi_lang.system.wildmatch import as_bytes_text

# What is left out for these reasons is replaced where a snapshot holds something else of that name.
REPLACEABLE = frozenset({LARGE, HARD_LINK, SPECIAL, UNREADABLE})


@dataclass(slots=True)
class Differences:
    """The changes of a tree since a snapshot; paths of folders end with `/`.

    Attributes:
        left: what differs, or may, and is left alone, with the reason.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)

    def in_order(self) -> Differences:
        """The same, sorted."""
        lists = (self.added, self.changed, self.removed)
        added, changed, removed = map(sorted, lists)
        return Differences(added, changed, removed, dict(sorted(self.left.items())))


class TreeComparison:
    """A snapshot beside the tree of now.

    Args:
        walker: what has looked at the tree, and knows what is protected.
    """

    def __init__(self, manifest: Manifest, walker: Walker, folders: OpenFolders) -> None:
        self._manifest = manifest
        self._walker = walker
        self._folders = folders
        self._tree = walker.walk(folders.root)
        self._found = Differences()

    def differences(self) -> Differences:
        """The differences; contents are read where metadata differ. Raises OSError."""
        manifest, tree = self._manifest, self._tree
        for path, kept in manifest.files.items():
            status = tree.files.get(path)
            if (kept.status is None or kept.status != status) and not self._has_content(path, kept, status):
                self._add(path, path)
        for path, target in manifest.links.items():
            if tree.links.get(path) != target:
                self._add(path, path)
        for path, mode in manifest.folders.items():
            if tree.folders.get(path) != mode:
                self._add(path, path + "/")
        _add_new(self._found, manifest, tree)
        return self._found.in_order()

    def _has_content(self, path: str, kept: KeptFile, status: FileStatus | None) -> bool:
        """Whether a file is as it was kept, though its status is another one."""
        if status is None or (status.mode, status.size) != (kept.mode, kept.size):
            return False
        now = read_file(self._folders, path)
        is_file = now.status is not None and now.status.mode == kept.mode
        return is_file and sha256(now.data).hexdigest() == kept.digest

    def _add(self, path: str, shown: str) -> None:
        """Note that something of the snapshot is not there as it was."""
        tree = self._tree
        is_replaceable = tree.left_out.get(path) in REPLACEABLE
        why = "" if is_replaceable else reason_to_leave(tree.left_out, path) or self._walker.protection(path)
        if why:
            self._found.left[shown] = why
        elif is_replaceable or path in tree.files or path in tree.links or path in tree.folders:
            self._found.changed.append(shown)
        else:
            self._found.removed.append(shown)


def _add_new(found: Differences, manifest: Manifest, tree: Tree) -> None:
    """Note new entries, unless they were left out at the time of the snapshot."""
    rules = PastRules(manifest.ignores)
    known = manifest.files.keys() | manifest.links.keys() | manifest.folders.keys()
    for paths, end in ((tree.files, ""), (tree.links, ""), (tree.folders, "/")):
        for path in paths:
            if path in known or reason_to_leave(manifest.left_out, path):
                continue
            if not rules.ignore(path, is_folder=bool(end)):
                found.added.append(path + end)
    for path, why in tree.own_left_out().items():
        if why in REPLACEABLE and path.rstrip("/") not in known and not reason_to_leave(manifest.left_out, path):
            found.left[path] = why


def reason_to_leave(left_out: Mapping[str, str], path: str) -> str:
    """Why something is left out, or a folder around it; empty where neither is."""
    if not left_out:
        return ""
    found = (left_out.get(part + "/") for part in parts_of(path))
    return left_out.get(path) or next(filter(None, found), "")


class PastRules:
    """The ignore rules at the time of a snapshot.

    Args:
        ignores: as a manifest has them, the outer ones first.
    """

    def __init__(self, ignores: Sequence[tuple[str, str, str]]) -> None:
        self._files = [(folder, before, text) for before, folder, text in reversed(ignores)]
        self._levels: list[tuple[str, IgnoreLevel]] | None = None

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Whether something, or a folder around it, would have been ignored."""
        if self._levels is None:
            self._levels = [(folder, level_of(before, folder, text)) for folder, before, text in self._files]
        for part in parts_of(path):
            levels = [level for folder, level in self._levels if part.startswith(folder)]
            if is_ignored(levels, as_bytes_text(part), is_folder=part != path or is_folder):
                return True
        return False


def parts_of(path: str) -> Iterator[str]:
    """The folders around something, the outermost first, then itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path
