"""Files of a project that are hidden from confined commands, and files that no command may change."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
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
    is_repository,
    linked_repository,
    nested_folders,
    walk_folders,
)
from koi_lang.settings import TOP_NAMES, is_stand_in
from koi_lang.system.open_folders import STATE_FOLDER

ENVIRONMENT = "pyvenv.cfg"
MAX_CLOSED = 1000
# The version of an index of git in which paths are shortened.
COMPRESSED = b"\0\0\0\4"
# Stands for a file that is not there yet, of which only rules for whole folders say something.
SOME_NAME = "any"
# Whether rules deny a kind of access to a path of the project.
FileDenial = Callable[[Literal["read", "write"], str], bool]


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


def find_closed_files(project: Path, programs: Set[str] = frozenset(), denies: FileDenial | None = None) -> ClosedFiles:
    """The closed files below a project now. The folder of journals is closed even before it exists.

    Args:
        project: with its links resolved.
        programs: the files of running programs, in small letters.
        denies: what rules say of other files; None where they say nothing.

    Raises:
        TooManyClosedFilesError: there are more than can be hidden.
    """
    closed = _Closed(project, programs, denies)
    for folder, entries in walk_folders(
        str(project), lambda each: not _is_closed_folder(each) and not closed.covers(each)
    ):
        closed.add(folder, entries)
        if closed.count > MAX_CLOSED:
            also = "" if denies is None else ", or that rules deny by their names and not by that of their folder"
            message = f"`{project.name}` holds more than {MAX_CLOSED:,} files that are closed to agents{also}"
            raise TooManyClosedFilesError(message)
    held = sorted({*closed.held, *folders_around(closed.by_path, project)})
    parts = (closed.folders, closed.files, closed.fixed, held, closed.repositories, closed.links)
    return ClosedFiles(*(tuple(each) for each in parts))


def folders_around(paths: Iterable[Path], project: Path) -> set[str]:
    """The folders of a project around some paths, which cannot be renamed where they are mounted by themselves."""
    return {str(folder) for path in paths for folder in path.parents if project in folder.parents}


class _Closed:
    """The closed parts of a project that a walk has come by; each once, in the order of names."""

    def __init__(self, project: Path, programs: Set[str], denies: FileDenial | None) -> None:
        self._project, self._programs = project, programs
        self._denies = denies
        is_fixed, state = denies is not None and denies("write", SOME_NAME), project / STATE_FOLDER
        # What is missing from a folder that cannot be changed is not made either.
        self.folders: dict[str, None] = {os.path.realpath(state): None} if not is_fixed or state.exists() else {}
        self.files: dict[str, None] = {}
        self.held: dict[str, None] = {}
        # What is closed by its path, and would be open with another name of a folder around it.
        self.by_path: list[Path] = []
        self.repositories: dict[str, None] = {}
        self.links: dict[str, None] = {}
        self._environments: set[str] = set()
        tops = (project / name for name in sorted(SETTINGS))
        self.fixed: dict[str, None] = {os.path.realpath(path): None for path in tops if path.is_file()}
        # Of an empty folder another command may have need now.
        missing = (project / name for name in TOP_NAMES if not (project / name).is_symlink())
        self.fixed |= {str(path): None for path in missing if not path.exists() or is_stand_in(project, path.name)}
        # Folders in which rules deny every change.
        self._fixed_folders = {str(project)} if is_fixed else set[str]()
        self.fixed |= dict.fromkeys(self._fixed_folders)

    @property
    def count(self) -> int:
        """How much it is."""
        return len(self.folders) + len(self.files) + len(self.fixed) + len(self.held)

    def covers(self, entry: os.DirEntry[str]) -> bool:
        """Whether nothing in a folder has to be looked at."""
        return entry.path in self.folders or entry.name in FOREIGN_FOLDERS

    def add(self, folder: str, entries: Sequence[os.DirEntry[str]]) -> None:
        """Add the closed entries of a folder."""
        names = {entry.name for entry in entries}
        if is_repository(names):
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
            if self._denies is not None and entry.name != REPOSITORY:
                self.add_denied(entry, self._denies)

    def add_denied(self, entry: os.DirEntry[str], denies: FileDenial) -> None:
        """Add what rules deny of an entry; files of git that cannot be read are hidden one by one.

        Of a link they deny what it leads to outside of the project; in it that has a name of its own. What stands in a
        folder that cannot be changed needs no mount of its own for that.
        """
        is_link, target = entry.is_symlink(), entry.path
        if is_link:
            target = os.path.realpath(target)
            if Path(target).is_relative_to(self._project) or not os.path.exists(target):
                return
        path, is_folder = os.path.relpath(entry.path, self._project), os.path.isdir(target)
        names = (path, f"{path}/{SOME_NAME}") if is_folder else (path,)
        is_fixed = not is_link and os.path.dirname(entry.path) in self._fixed_folders
        denies_writing = not (is_link or is_fixed) and any(denies("write", name) for name in names)
        denies_reading = any(denies("read", name) for name in names)
        if denies_writing:
            self.fixed[entry.path] = None
        if is_folder and (is_fixed or denies_writing):
            self._fixed_folders.add(entry.path)
        if denies_reading and not (is_folder and may_be_tracked(Path(target), self._project)):
            (self.folders if is_folder else self.files)[target] = None
        if denies_writing or denies_reading:
            self.by_path.append(Path(entry.path))

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
            self.by_path += [] if kind else [Path(entry.path)]


@lru_cache(4096)
def _kind_of(name: str) -> Literal["secret", "settings", ""]:
    """The kind of closed content by the name of a file, cached since big projects repeat names."""
    if is_secret((name,)):
        return "secret"
    return "settings" if as_systems_see(name) in SETTINGS else ""


def _is_closed_folder(entry: os.DirEntry[str]) -> bool:
    return entry.name in (STATE_FOLDER, REPOSITORY) or as_systems_see(entry.name) in SECRET_FOLDERS


# ---------------------------------------------------------------- what git sees of them

# In the folder for short-lived files, which is the command's own.
IGNORED, ATTRIBUTES = "/tmp/.koi-git-ignore", "/tmp/.koi-git-attributes"
FILTER = "koi-closed"
# With which git takes what its index has for the content of a file that is hidden; otherwise it fails.
FILTER_SETTINGS = (
    (f"filter.{FILTER}.clean", "git cat-file blob :%f"),
    (f"filter.{FILTER}.smudge", "cat"),
    (f"filter.{FILTER}.required", "true"),
)
# What has a meaning in patterns of git.
SIGNS = re.compile(r"([\\*?\[\] ])")
MAX_STAND_IN_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ViewOfGit:
    """Files and variables with which git leaves closed files as they are, rather than fail at them.

    Attributes:
        stand_ins: files with the paths at which a command sees them.
    """

    stand_ins: Sequence[tuple[str, str]] = ()
    variables: Sequence[tuple[str, str]] = ()


def view_of_git(closed: ClosedFiles, project: Path, store: Path, ignored: Sequence[Path] = ()) -> ViewOfGit:
    """Have git ignore closed files, and take those that it tracks for unchanged, without a change to a repository.

    A tracked file has a stand-in of empty lines that is as long, since git looks at the content of such a file alone,
    and that is then the one in its index.

    Args:
        store: a folder of the person for what is made here.
        ignored: files of patterns that the person has git ignore everywhere.
    """
    tracked: list[tuple[str, str]] = []
    patterns: list[str] = []
    indexes: dict[Path, bytes] = {}
    missing = (
        path for path in closed.fixed if not os.path.exists(path) or is_stand_in(project, os.path.basename(path))
    )
    empty = (*closed.folders, *missing)
    for file in map(Path, (*closed.files, *empty)):
        place = None if REPOSITORY in file.parts else place_of_repository(file, project)
        if place is None:
            continue
        path = file.relative_to(place).as_posix()
        pattern = "/" + SIGNS.sub(r"\\\1", path).replace("\n", "?")
        is_file = file.is_file()
        patterns.append(pattern if is_file else f"{pattern}/")
        if is_file and place not in indexes:
            indexes[place] = read_index(place)
        if is_file and os.fsencode(path) in indexes[place] and file.stat().st_size <= MAX_STAND_IN_BYTES:
            quoted = re.sub(r'([\\"])', r"\\\1", pattern)
            tracked.append((str(file), f'"{quoted}" filter={FILTER}'))
    if not patterns:
        return ViewOfGit()
    try:
        everywhere = [each.read_text("utf-8", "replace") for each in ignored if each.is_file()]
        stand_ins = [(_keep_content(store, "\n".join((*everywhere, *patterns, ""))), IGNORED)]
        stand_ins += [(_keep_content(store, "\n" * os.stat(file).st_size), file) for file, _ in tracked]
        stand_ins.append((_keep_content(store, "\n".join((*(line for _, line in tracked), ""))), ATTRIBUTES))
    except OSError:  # git then says what it misses
        return ViewOfGit()
    own = (("core.excludesFile", IGNORED), ("core.attributesFile", ATTRIBUTES), *FILTER_SETTINGS)
    # No command has such variables of the person: they are called like keys.
    variables = [("GIT_CONFIG_COUNT", str(len(own)))]
    for at, (key, value) in enumerate(own):
        variables += [(f"GIT_CONFIG_KEY_{at}", key), (f"GIT_CONFIG_VALUE_{at}", value)]
    return ViewOfGit(stand_ins, variables)


def place_of_repository(path: Path, project: Path) -> Path | None:
    """The nearest folder of a project around a path that is a worktree; None for none."""
    inside = (each for each in path.parents if each.is_relative_to(project))
    return next((each for each in inside if (each / REPOSITORY).exists()), None)


def may_be_tracked(folder: Path, project: Path) -> bool:
    """Whether the repository around a folder of a project may have files of it."""
    if (place := place_of_repository(folder, project)) is None:
        return False
    index = read_index(place)
    return index[4:8] == COMPRESSED or os.fsencode(f"{folder.relative_to(place).as_posix()}/") in index


def read_index(worktree: Path) -> bytes:
    """The index of a repository, which names the files that it tracks; nothing where it cannot be read."""
    folder = worktree / REPOSITORY
    try:
        return ((folder if folder.is_dir() else Path(linked_repository(str(folder)) or folder)) / "index").read_bytes()
    except OSError:
        return b""


def _keep_content(store: Path, text: str) -> str:
    """Keep some content in a file of the store, which is called by it; gives its path."""
    content = text.encode("utf-8", "surrogateescape")
    file = store / sha256(content).hexdigest()[:32]
    if not file.is_file():
        store.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=store, delete=False) as made:
            made.write(content)
        os.replace(made.name, file)
    return str(file.resolve())
