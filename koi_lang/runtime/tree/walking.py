"""The tree of a project as it is: stored files, links and folders, and omitted ones with the reason."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from dataclasses import dataclass, field, replace
from pathlib import Path

from koi_lang.errors import AgentError, reason
from koi_lang.runtime.concurrency.stoppable_threads import Stop
from koi_lang.runtime.guards.file_names import as_systems_see, is_closed
from koi_lang.runtime.guards.paths import SETTINGS
from koi_lang.runtime.snapshots.manifest import MODE, FileStatus
from koi_lang.runtime.tree.gitignore import NAME, IgnoreFile, IgnoreLevel, is_ignored
from koi_lang.settings import is_stand_in
from koi_lang.system.open_folders import FILE, REPLACED, name_of, open_inner
from koi_lang.system.wildmatch import as_bytes_text

# Larger files are left out, in bytes; more of them, deeper folders and longer rules are refused or left out.
MAX_FILE_BYTES = 5_000_000
MAX_FILES = 200_000
MAX_DEPTH = 100
MAX_RULE_BYTES = 100_000
# Why something is left out. The first two follow from rules, so that they count for what is not there, too.
IGNORED, HIDDEN = "ignored", "hidden"
PROGRAM = "program"
CONFIGURATION = "settings"
LARGE = "large"
HARD_LINK = "hard link"
SPECIAL = "special"
UNREADABLE = "unreadable"
BAD_NAME = "name"
DEEP = "deep"
CHANGING = "changing"
FOLLOWING_RULES = (IGNORED, HIDDEN)


@dataclass(slots=True)
class Tree:
    """The entries of a project.

    Attributes:
        files: by their paths from the folder of the project.
        links: symbolic links with what they lead to.
        folders: with their modes.
        left_out: with the reason; a folder stands for all that is in it.
        ignores: the `.gitignore` files, the outer ones first: what stands before their folder above the project, the
            folder in it, and their text.
    """

    files: dict[str, FileStatus] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    ignores: list[tuple[str, str, str]] = field(default_factory=list)

    def size(self) -> int:
        """How much is there, as far as it was looked at."""
        return len(self.files) + len(self.links) + len(self.folders) + len(self.left_out)

    def own_left_out(self) -> dict[str, str]:
        """The omissions without a rule."""
        return {path: why for path, why in self.left_out.items() if why not in FOLLOWING_RULES}


class ManyFilesError(AgentError):
    """There are more files and folders in a project than are looked at."""


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """A folder that is being looked at.

    Attributes:
        held: its descriptor.
        prefix: of the paths in it, empty or with a `/` at its end.
        levels: the `.gitignore` files that count in it, the innermost first.
    """

    held: int
    prefix: str
    levels: tuple[IgnoreLevel, ...]
    depth: int = 0

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Whether `.gitignore` files name something in it."""
        return bool(self.levels) and is_ignored(self.levels, as_bytes_text(path), is_folder=is_folder)


class FolderWalk(ABC):
    """Looks through the folders below an open one, each before those in it, and follows no link.

    Args:
        stop: is called for each folder; raises where nobody wants to know any more.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    @abstractmethod
    def sees_folder(self, here: OpenFolder, entry: os.DirEntry[str]) -> bool:
        """Note an entry of a folder; returns whether it is a folder to walk into."""

    @abstractmethod
    def require_few(self) -> None:
        """Raise AgentError where too much has been found."""

    def add_rules(self, before: str, folder: str, text: str) -> IgnoreLevel:
        """The rules of a `.gitignore` that was met, as `level_of` takes them."""
        return level_of(before, folder, text)

    @abstractmethod
    def enter(self, path: str, held: int) -> None:
        """Take note of a folder that is looked into."""

    @abstractmethod
    def leave_out(self, path: str, why: str) -> None:
        """Take note of a folder that cannot be looked into."""

    def rules_above(self, project: Path) -> tuple[IgnoreLevel, ...]:
        """The rules of the folders around a project up to that of its repository, the innermost first."""
        levels: tuple[IgnoreLevel, ...] = ()
        for folder in reversed(folders_above(project)):
            if text := rules_in(os.fspath(folder / NAME), os.fspath(folder / NAME)):
                before = project.relative_to(folder).as_posix() + "/"
                levels = (self.add_rules(before, "", text), *levels)
        return levels

    def look(self, here: OpenFolder) -> None:
        """Look through an open folder. Raises AgentError, OSError."""
        self._stop()
        if text := rules_in(NAME, here.prefix + NAME, here.held):
            here = replace(here, levels=(self.add_rules("", here.prefix, text), *here.levels))
        with os.scandir(here.held) as entries:
            inner = sorted(entry.name for entry in entries if self.sees_folder(here, entry))
        self.require_few()
        for name in inner:
            self._enter(here, name)

    def _enter(self, here: OpenFolder, name: str) -> None:
        path = here.prefix + name
        if here.depth == MAX_DEPTH:
            self.leave_out(path, DEEP)
            return
        try:
            held = open_inner(here.held, name)
        except PermissionError:
            self.leave_out(path, UNREADABLE)
            return
        if held is None:
            return
        try:
            self.enter(path, held)
            self.look(OpenFolder(held, path + "/", here.levels, here.depth + 1))
        finally:
            os.close(held)


class Walker(FolderWalk):
    """Looks at a project.

    Args:
        project: its folder.
        running: the files of the running program, as paths from there in small letters.
        stop: is called now and then; raises where nobody wants the tree any more.
        is_whole: whether all counts that actions may change: hidden files, the running program, settings, and files of
            several names or of one that is not UTF-8, too, but not what is closed to agents.
        most: files, links and folders.
    """

    def __init__(
        self, project: Path, running: frozenset[str], stop: Stop, *, is_whole: bool = False, most: int | None = None
    ) -> None:
        super().__init__(stop)
        self._project, self._running = project, running
        self.is_whole, self._most = is_whole, MAX_FILES if most is None else most
        self._closed: dict[str, bool] = {}
        self._tree = Tree()

    def walk(self, root: int) -> Tree:
        """The tree below an open folder. Raises AgentError, OSError."""
        self._tree = Tree()
        self.look(OpenFolder(root, "", self.rules_above(self._project)))
        return self._tree

    def add_rules(self, before: str, folder: str, text: str) -> IgnoreLevel:
        """Keep them in the tree."""
        self._tree.ignores.append((before, folder, text))
        return level_of(before, folder, text)

    def enter(self, path: str, held: int) -> None:
        """Keep its mode."""
        self._tree.folders[path] = os.fstat(held).st_mode & MODE

    def leave_out(self, path: str, why: str) -> None:
        """Keep the reason."""
        self._tree.left_out[path + "/"] = why

    def require_few(self) -> None:
        """Raise ManyFilesError."""
        if self._tree.size() > self._most:
            help = "Have `.gitignore` name the folders that need not be kept."
            raise ManyFilesError(f"there are more than {self._most:,} files and folders in the project", help=help)

    def sees_folder(self, here: OpenFolder, entry: os.DirEntry[str]) -> bool:
        """Note a file or link, or why something is left out; says whether it is a folder to look into."""
        name = entry.name
        path = here.prefix + name
        is_folder = entry.is_dir(follow_symlinks=False)
        if self._is_hidden(name):
            why = HIDDEN
        elif here.is_ignored(path, is_folder=is_folder):
            why = IGNORED
        elif not self.is_whole and not path.isascii() and not _is_text(path):
            path, why = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), BAD_NAME
        elif is_folder:
            return not is_stand_in(self._project, path)
        else:
            why = self._note(here, entry, path)
        if why:
            self._tree.left_out[path + "/" * is_folder] = why
        return False

    def _note(self, here: OpenFolder, entry: os.DirEntry[str], path: str) -> str:
        """Note a file or link; gives why it is left out, if it is."""
        if why := self.protection(path):
            return why
        try:
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return self._note_link(path, os.readlink(entry.name, dir_fd=here.held))
        except PermissionError:
            return UNREADABLE
        except OSError as error:
            if error.errno in REPLACED:
                return ""  # it was there a moment ago
            raise
        if why := left_out_for(found, is_whole=self.is_whole):
            return why
        self._tree.files[path] = status_of(found)
        return ""

    def _note_link(self, path: str, target: str) -> str:
        if not self.is_whole and not _is_text(target):
            return BAD_NAME
        self._tree.links[path] = target
        return ""

    def _is_hidden(self, name: str) -> bool:
        if not self.is_whole:
            return name[0] == "."
        if name not in self._closed:
            self._closed[name] = bool(is_closed([name]))
        return self._closed[name]

    def protection(self, path: str) -> str:
        """The reason why any entry of a name is neither stored nor changed; empty for others."""
        if self.is_whole:
            return ""
        folded = path.casefold()
        if folded in self._running:
            return PROGRAM
        if ("koi" in folded or not folded.isascii()) and as_systems_see(name_of(path)) in SETTINGS:
            return CONFIGURATION
        return ""


def status_of(found: os.stat_result) -> FileStatus:
    """The metadata that show whether a file has changed."""
    return FileStatus(found.st_mode & MODE, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def left_out_for(found: os.stat_result, *, is_whole: bool = False) -> str:
    """Why something other than a link or folder is not kept; empty where it is.

    Args:
        is_whole: as a walker has it.
    """
    if not stat.S_ISREG(found.st_mode):
        return SPECIAL
    if found.st_nlink > 1 and not is_whole:
        return HARD_LINK
    return LARGE if found.st_size > MAX_FILE_BYTES else ""


def level_of(before: str, folder: str, text: str) -> IgnoreLevel:
    """The rules of a `.gitignore`.

    Args:
        before: what stands between its folder above the project and the project.
        folder: it in the project, empty or with a `/` at its end.
    """
    return IgnoreLevel(IgnoreFile(text), as_bytes_text(before), len(as_bytes_text(folder)))


def folders_above(project: Path) -> list[Path]:
    """The folders around a project up to that of its repository, the nearest first; none where it is in none."""
    if os.path.lexists(project / ".git"):
        return []
    for number, folder in enumerate(project.parents, 1):
        if os.path.lexists(folder / ".git"):
            return [*project.parents][:number]
    return []


def rules_in(name: str, text: str, folder: int | None = None) -> str:
    """The text of a `.gitignore`, empty where there is none; git does not follow a link here, either.

    Raises:
        AgentError: it cannot be read, so that nobody knows what is ignored.
    """
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return ""
        with os.fdopen(os.open(name, FILE, dir_fd=folder), "rb") as file:
            data = file.read(MAX_RULE_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise AgentError(f"`{text}` cannot be read: {reason(error)}", help="It says which files are kept.") from error
    if len(data) > MAX_RULE_BYTES:
        raise AgentError(f"`{text}` has more than {MAX_RULE_BYTES:,} bytes", help="Name folders instead of files.")
    return data.removeprefix(BOM_UTF8).decode("latin-1")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
