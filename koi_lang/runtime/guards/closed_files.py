"""Files of a project that are hidden from confined commands, and files that no command may change."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from koi_lang.errors import KoiError
from koi_lang.runtime.guards.file_names import SECRET_FOLDERS, as_systems_see, is_secret
from koi_lang.runtime.guards.paths import SETTINGS
from koi_lang.runtime.guards.repositories import (
    FOREIGN_FOLDERS,
    REPOSITORY,
    RepositoryWatch,
    fixed_parts,
    is_bare,
    linked_repository,
    nested_folders,
    walk_folders,
)
from koi_lang.settings import TOP_NAMES, is_stand_in
from koi_lang.system.open_folders import STATE_FOLDER

ENVIRONMENT = "pyvenv.cfg"
MAX_CLOSED = 1000


class TooManyClosedFilesError(KoiError):
    """A project holds more closed files than can be hidden one by one."""


@dataclass(frozen=True, slots=True)
class ClosedFiles:
    """The closed files below a project, each with its links resolved.

    Attributes:
        folders: nothing in them is seen.
        files: they cannot be opened.
        fixed: files and folders that are seen, and not changed.
        held: folders that hold something fixed and would give it away if they were renamed.
        repositories: folders of git.
        links: files and links that stand for such a folder.
    """

    folders: Sequence[str] = ()
    files: Sequence[str] = ()
    fixed: Sequence[str] = ()
    held: Sequence[str] = ()
    repositories: Sequence[str] = ()
    links: Sequence[str] = ()

    def watch_repositories(self, project: Path) -> RepositoryWatch:
        """A watch over the repositories while a command runs; the caller ends it. Raises OSError."""
        watch = RepositoryWatch(project)
        watch.begin(self.repositories, self.links)
        return watch


def find_closed_files(project: Path, programs: Set[str] = frozenset()) -> ClosedFiles:
    """The closed files below a project now. The folder of journals is closed even before it exists.

    Args:
        project: with its links resolved.
        programs: the files of running programs, in small letters.

    Raises:
        TooManyClosedFilesError: there are more than can be hidden.
    """
    closed = _Closed(project, programs)
    for folder, entries in walk_folders(
        str(project), lambda each: not _is_closed_folder(each) and each.name not in FOREIGN_FOLDERS
    ):
        closed.add(folder, entries)
        if closed.count > MAX_CLOSED:
            message = f"`{project.name}` holds more than {MAX_CLOSED:,} files that are closed to agents"
            raise TooManyClosedFilesError(message)
    parts = (closed.folders, closed.files, closed.fixed, closed.held, closed.repositories, closed.links)
    return ClosedFiles(*(tuple(each) for each in parts))


class _Closed:
    """The closed parts of a project that a walk has come by; each once, in the order of names."""

    def __init__(self, project: Path, programs: Set[str]) -> None:
        self._project, self._programs = project, programs
        self.folders: dict[str, None] = {os.path.realpath(project / STATE_FOLDER): None}
        self.files: dict[str, None] = {}
        self.held: dict[str, None] = {}
        self.repositories: dict[str, None] = {}
        self.links: dict[str, None] = {}
        self._environments: set[str] = set()
        tops = (project / name for name in sorted(SETTINGS))
        self.fixed: dict[str, None] = {os.path.realpath(path): None for path in tops if path.is_file()}
        # Of an empty folder another command may have need now.
        missing = (project / name for name in TOP_NAMES if not (project / name).is_symlink())
        self.fixed |= {str(path): None for path in missing if not path.exists() or is_stand_in(project, path.name)}

    @property
    def count(self) -> int:
        """How much it is."""
        return len(self.folders) + len(self.files) + len(self.fixed) + len(self.held)

    def add(self, folder: str, entries: Sequence[os.DirEntry[str]]) -> None:
        """Add the closed entries of a folder."""
        names = {entry.name for entry in entries}
        if is_bare(names):
            self._add_repository(folder)
        is_environment = ENVIRONMENT in names and folder != str(self._project)
        if is_environment or os.path.dirname(folder) in self._environments:
            self._environments.add(folder)
        for entry in entries:
            if entry.name == REPOSITORY:
                self._add_git(entry)
            elif folder in self._environments:
                continue
            elif not entry.is_dir(follow_symlinks=False):
                self._add_file(entry)
            elif _is_closed_folder(entry):
                self.folders[entry.path] = None

    def _add_git(self, entry: os.DirEntry[str]) -> None:
        """Add an entry called `.git`: a repository, or a file that points to one elsewhere."""
        if entry.is_dir(follow_symlinks=False):
            self._add_repository(entry.path)
            return
        self.links[entry.path] = None
        if not entry.is_symlink():
            self.fixed[entry.path] = None
        target = linked_repository(entry.path)
        if target is not None and os.path.isdir(target) and Path(target).is_relative_to(self._project):
            self._add_repository(target)

    def _add_repository(self, folder: str) -> None:
        self.held[folder] = None
        self.repositories[folder] = None
        self._add_fixed_parts(folder)
        for nested, is_one in nested_folders(folder):
            self.held[nested] = None
            if is_one:
                self.repositories[nested] = None
                self._add_fixed_parts(nested)

    def _add_fixed_parts(self, repository: str) -> None:
        inside = (path for path in fixed_parts(repository) if Path(path).is_relative_to(self._project))
        self.fixed |= dict.fromkeys(inside)

    def _add_file(self, entry: os.DirEntry[str]) -> None:
        kind = _kind_of(entry.name)
        if kind == "secret":
            target = os.path.realpath(entry.path)
            if os.path.exists(target) and not os.path.isdir(target):
                self.files[target] = None
        elif kind == "settings" or (self._programs and entry.path.casefold() in self._programs):
            self.fixed[os.path.realpath(entry.path)] = None


@lru_cache(4096)
def _kind_of(name: str) -> Literal["secret", "settings", ""]:
    """The kind of closed content by the name of a file, cached since big projects repeat names."""
    if is_secret((name,)):
        return "secret"
    return "settings" if as_systems_see(name) in SETTINGS else ""


def _is_closed_folder(entry: os.DirEntry[str]) -> bool:
    return entry.name in (STATE_FOLDER, REPOSITORY) or as_systems_see(entry.name) in SECRET_FOLDERS
