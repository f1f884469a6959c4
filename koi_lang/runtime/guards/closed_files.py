"""What of a project a confined command does not see, and what of it no command may change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from koi_lang.errors import KoiError
from koi_lang.runtime.guards.code_files import as_systems_see
from koi_lang.runtime.guards.paths import SETTINGS
from koi_lang.runtime.guards.secret_files import FOLDERS, is_secret

JOURNALS, REPOSITORY = ".koi", ".git"
# What git runs commands from.
OF_REPOSITORY = ("config", "hooks")
# What others have written: certificates in there are no secrets, and there are very many files.
FOREIGN_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__"})
ENVIRONMENT = "pyvenv.cfg"
MOST_CLOSED = 1000


class TooManyClosedFilesError(KoiError):
    """A project holds more closed files than can be hidden one by one."""


@dataclass(frozen=True, slots=True)
class ClosedFiles:
    """What is closed below a project, each with its links resolved.

    Attributes:
        folders: nothing in them is seen.
        files: they cannot be opened.
        fixed: files and folders that are seen, and not changed.
        held: folders that hold something fixed and would give it away if they were renamed.
    """

    folders: Sequence[str] = ()
    files: Sequence[str] = ()
    fixed: Sequence[str] = ()
    held: Sequence[str] = ()


def find_closed_files(project: Path, programs: Set[str] = frozenset()) -> ClosedFiles:
    """What is closed below a project now. The folder of journals is closed before it is there.

    Args:
        project: with its links resolved.
        programs: the files of running programs, in small letters.

    Raises:
        TooManyClosedFilesError: there are more than can be hidden.
    """
    found = _Found(project, programs)
    for entry in _entries(str(project)):
        found.add(entry)
        if found.count > MOST_CLOSED:
            told = f"`{project.name}` holds more than {MOST_CLOSED:,} files that are closed to agents"
            raise TooManyClosedFilesError(told)
    return ClosedFiles(*(tuple(each) for each in (found.folders, found.files, found.fixed, found.held)))


class _Found:
    """What has been found so far; each once, in the order of names."""

    def __init__(self, project: Path, programs: Set[str]) -> None:
        self._programs = programs
        self.folders: dict[str, None] = {os.path.realpath(project / JOURNALS): None}
        self.files: dict[str, None] = {}
        self.held: dict[str, None] = {}
        tops = (project / name for name in sorted(SETTINGS))
        self.fixed: dict[str, None] = {os.path.realpath(path): None for path in tops if path.is_file()}

    @property
    def count(self) -> int:
        """How much it is."""
        return len(self.folders) + len(self.files) + len(self.fixed) + len(self.held)

    def add(self, entry: os.DirEntry[str]) -> None:
        """Take in what is closed."""
        if not entry.is_dir(follow_symlinks=False):
            self._add_file(entry)
        elif entry.name == REPOSITORY:
            self.held[entry.path] = None
            inner = (os.path.join(entry.path, name) for name in OF_REPOSITORY)
            self.fixed |= {path: None for path in inner if os.path.exists(path)}
        else:
            self.folders[entry.path] = None

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
    """What a file of a name holds that is closed; big projects have the same names many times."""
    if is_secret((name,)):
        return "secret"
    return "settings" if as_systems_see(name) in SETTINGS else ""


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """The files below a folder, and those folders that are closed, which are not entered."""
    waiting = [folder]
    while waiting:
        for entry in _list_folder(waiting.pop()):
            if not entry.is_dir(follow_symlinks=False) or _is_closed_folder(entry):
                yield entry
            elif not _is_foreign(entry):
                waiting.append(entry.path)


def _is_closed_folder(entry: os.DirEntry[str]) -> bool:
    return entry.name in (JOURNALS, REPOSITORY) or as_systems_see(entry.name) in FOLDERS


def _is_foreign(entry: os.DirEntry[str]) -> bool:
    """Whether nothing in a folder is the project's own."""
    return entry.name in FOREIGN_FOLDERS or os.path.isfile(os.path.join(entry.path, ENVIRONMENT))


def _list_folder(folder: str) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name; nothing where a command cannot look either."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
