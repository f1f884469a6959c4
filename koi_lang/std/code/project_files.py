"""The files of a project that agents may see: `.gitignore` is heeded, closed files and links are left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.concurrency.stoppable_threads import Stop, run_in_thread
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.guards.paths import own_folders, running_programs
from koi_lang.runtime.tree.gitignore import NAME, IgnoreLevel
from koi_lang.runtime.tree.walking import MAX_FILES, FolderWalk, OpenFolder, level_of, rules_in
from koi_lang.system.globs import glob_matcher, has_wildcards, require_pattern
from koi_lang.system.open_folders import OpenFolders

# Whether the rules of the person let a file be read, by its path from the project.
MayRead = Callable[[str], bool]


def read_all(path: str) -> bool:
    """Whether a file may be read where there are no rules: it may."""
    return True


def require_reading(may_read: MayRead, name: str, path: str) -> None:
    """Raise PermissionDeniedError where rules do not let a file be read that a path leads to."""
    if not may_read(name):
        help = "Say what you need of it, or go on without."
        raise PermissionDeniedError(f"the rules of this project do not let `{path}` be read", help=help)


@dataclass(frozen=True, slots=True)
class View:
    """The visible part of a project.

    Attributes:
        root: its folder, with all links resolved.
        may_read: says what rules leave of it.
        stop: raises where nobody waits any more.
        running: the files of running programs, in small letters.
        own: the folders of Koi itself.
    """

    root: Path
    may_read: MayRead
    stop: Stop
    running: frozenset[str] = field(default_factory=lambda: frozenset(running_programs()))
    own: frozenset[str] = field(default_factory=lambda: frozenset(map(str, own_folders())))

    def shows(self, path: str, *, is_folder: bool) -> bool:
        """Whether something is open to agents, the folders around it aside, and has a name that they can write."""
        name = path[path.rfind("/") + 1 :]
        if not name.isprintable() or "\\" in name or not name.strip():
            return False
        # A folder is closed by what it holds, not for being called like a file.
        if is_closed((name, "any") if is_folder else (name,)):
            return False
        if is_folder:
            return f"{self.root}/{path}" not in self.own
        return self.may_read(path) and f"{self.root}/{path}".casefold() not in self.running

    def require_reading(self, name: str, path: str) -> None:
        """Raise PermissionDeniedError where rules do not let something be read that a path leads to."""
        require_reading(self.may_read, name, path)


def files_below(view: View, start: str = "") -> list[str]:
    """The paths of all files below a folder of the project, sorted; that folder itself may be an ignored one.

    Raises:
        AgentError: there are too many, or rules of ignored files cannot be read.
        OSError: the folder cannot be opened.
    """
    with OpenFolders(view.root) as folders:
        return sorted(_FileWalk(view).walk(folders, start))


class _FileWalk(FolderWalk):
    def __init__(self, view: View) -> None:
        super().__init__(view.stop)
        self._view = view
        self._found: list[str] = []

    def walk(self, folders: OpenFolders, start: str) -> list[str]:
        levels = (*reversed([*_levels_on_the_way(folders, start)]), *self.rules_above(self._view.root))
        self.look(OpenFolder(folders.open(start), f"{start}/" if start else "", levels))
        return self._found

    def enter(self, path: str, held: int) -> None:
        """Folders are not listed."""

    def leave_out(self, path: str, why: str) -> None:
        """Leave out a path, with its content."""

    def require_few(self) -> None:
        if len(self._found) > MAX_FILES:
            help = "Name a folder of it, or have `.gitignore` name what need not be looked at."
            raise AgentError(f"there are more than {MAX_FILES:,} files to look at", help=help)

    def sees_folder(self, here: OpenFolder, entry: os.DirEntry[str]) -> bool:
        """Note a file; says whether something is a folder to look into. Links and pipes are neither."""
        path = here.prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not entry.is_file(follow_symlinks=False):
            return False
        if not self._view.shows(path, is_folder=is_folder) or here.is_ignored(path, is_folder=is_folder):
            return False
        if not is_folder:
            self._found.append(path)
        return is_folder


def _levels_on_the_way(folders: OpenFolders, start: str) -> Iterator[IgnoreLevel]:
    """The rules of the folders between the project and one in it, that one left out."""
    parts = start.split("/") if start else []
    for count in range(len(parts)):
        folder = "/".join(parts[:count])
        prefix = f"{folder}/" if folder else ""
        if text := rules_in(NAME, prefix + NAME, folders.open(folder)):
            yield level_of("", prefix, text)


MAX_LISTED = 1000


async def list_files(root: Path, pattern: str = "**", *, may_read: MayRead = read_all) -> dict[str, Any]:
    """The files of a project that a pattern such as `src/**/*.py` fits, sorted; the name of a folder means all in it.

    Args:
        root: the folder of the project.
        may_read: says what rules leave of it.

    Returns:
        `success`, `count` of all that fit, `truncated`, and the `files`, at most 1,000.

    Raises:
        AgentError: it is no pattern, or there are too many files to look at.
    """
    wanted = require_pattern(pattern)
    return await run_in_thread(lambda stop: _fitting(View(root.resolve(), may_read, stop), wanted))


def _fitting(view: View, pattern: str) -> dict[str, Any]:
    folder = pattern.rstrip("/")
    if folder in (".", ""):
        pattern = "**"
    elif pattern.endswith("/") or (not has_wildcards(folder) and os.path.isdir(view.root / folder)):
        pattern = f"{folder}/**"
    fits = glob_matcher(pattern)
    found = [path for path in files_below(view) if fits(path)]
    result: dict[str, Any] = {"success": True, "count": len(found), "truncated": len(found) > MAX_LISTED}
    result["files"] = found[:MAX_LISTED]
    if not found and "/" not in pattern:
        result["hint"] = f"`{pattern}` is about the uppermost folder; `**/{pattern}` is about all folders"
    elif result["truncated"]:
        result["hint"] = f"these are the first {MAX_LISTED:,}; name a folder to see the others"
    return result
