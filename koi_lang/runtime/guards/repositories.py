"""Git repositories in a project: parts that no command may change, and the permitted content of new ones."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from koi_lang.errors import AgentError, reason, undone_by
from koi_lang.settings import TOP_NAMES, remove_stand_ins
from koi_lang.system.file_locks import try_lock
from koi_lang.system.open_folders import (
    FILE,
    FOLDER,
    REPLACED,
    STATE_FOLDER,
    UNFOLLOWED,
    OpenFolders,
    read_regular_file,
)

REPOSITORY = ".git"
# What others have written: there are very many files in there, and nobody works in them.
FOREIGN_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__"})
# What git obeys, each with the text of a file that changes nothing in its place; None for an empty folder.
STAND_INS = {"hooks": None, "commondir": ".\n", "config": "", "config.worktree": ""}
# Folders of a repository that hold others: those of linked worktrees and of submodules.
NESTING = ("worktrees", "modules")
# What git itself writes while it works, and what can do no more than files of the project.
WRITABLE = re.compile(
    r"objects|refs|logs|info|lfs|annex|index|packed-refs|shallow|sharedindex\..+|rebase-merge|rebase-apply|sequencer"
    r"|rr-cache|gc\.(?:log|pid)|fsmonitor--daemon.*|[A-Z][A-Z0-9_]*|.+\.lock"
)
# Of these a folder consists that is a repository without being called `.git`, and one for a linked worktree.
BARE, OF_WORKTREE = frozenset({"HEAD", "objects", "refs"}), frozenset({"HEAD", "commondir"})
# Where a linked worktree has its common folder, from its own one.
COMMON_FOLDER = "../.."
LINK = re.compile(r"gitdir: (.+?)\s*", re.DOTALL)
REBASE, TODO = "rebase-merge", "git-rebase-todo"
RUNS_COMMAND = re.compile(r"\s*(?:exec|x)\b.*", re.DOTALL)
DISABLED = ".disabled"
MAX_FILE_BYTES = 1_000_000
MAX_WAIT_S = 2.0
PAUSE_S = 0.003

MAX_HEAD_BYTES = 1000

SECTION = re.compile(r'[ \t]*\[[ \t]*(\w+)(?:[ \t]+"[^"\\]*")?[ \t]*\][ \t\r]*', re.ASCII)
SETTING = re.compile(r"[ \t]*(\w+)[ \t]*=([^\\]*)", re.ASCII)
# The settings of new repositories by which git runs nothing and works in no other folder.
HARMLESS = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
    "sparsecheckout sparsecheckoutcone",
    "user": "name email",
    "init": "defaultbranch",
    "remote": "url pushurl fetch tagopt promisor partialclonefilter",
    "branch": "remote merge rebase description",
    "submodule": "url active",
    "extensions": "objectformat partialclone refstorage worktreeconfig",
    "pull": "rebase ff",
    "push": "default autosetupremote",
    "lfs": "repositoryformatversion",
}


def git_branch(folder: Path) -> str:
    """The branch of git of a folder, the beginning of a commit where it is on none; empty without a repository."""
    with suppress(OSError, UnicodeDecodeError):
        git = next((each / REPOSITORY for each in (folder, *folder.parents) if (each / REPOSITORY).exists()), None)
        if git is not None and git.is_file():  # of a work tree, whose state is elsewhere
            pointer = read_regular_file(git, MAX_HEAD_BYTES).decode("utf-8")
            git = git.parent / pointer.removeprefix("gitdir:").strip()
        # A folder may be a stranger's: neither a pipe nor an endless file is read.
        head = "" if git is None else read_regular_file(git / "HEAD", MAX_HEAD_BYTES).decode("utf-8").strip()
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:7]
    return ""


def walk_folders(
    root: str, is_entered: Callable[[os.DirEntry[str]], bool], *, opens: bool = False
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """The folders below one that can be listed, each with its entries by name; links are not followed.

    Args:
        opens: whether folders that nobody may list are made ones that their owner may.
    """
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            if opens and not os.access(folder, os.R_OK | os.X_OK):
                os.chmod(folder, 0o700)
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        yield folder, ordered
        waiting += [each.path for each in ordered if each.is_dir(follow_symlinks=False) and is_entered(each)]


def is_bare(names: Iterable[str]) -> bool:
    """Whether git takes a folder with these entries for a repository, under any name."""
    return BARE.issubset(names)


def nested_folders(repository: str) -> Iterator[tuple[str, bool]]:
    """The folders in one that lead to those of worktrees and submodules, and whether each is one; outer ones first."""
    waiting = [os.path.join(repository, name) for name in NESTING]
    while waiting:
        folder = waiting.pop()
        for _, entries in walk_folders(folder, lambda entry: False):
            is_one = any(entry.name == "HEAD" for entry in entries)
            yield folder, is_one
            inner = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
            waiting += [entry.path for entry in inner if not is_one or entry.name in NESTING]


def fixed_parts(repository: str) -> Iterator[str]:
    """The protected entries of a repository's folder, missing ones that git would obey included."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(repository)
    if not is_bare(names) and not OF_WORKTREE.issubset(names):
        yield repository
        return
    for name in sorted({*names, *STAND_INS}):
        if name not in NESTING and not WRITABLE.fullmatch(name):
            yield os.path.realpath(os.path.join(repository, name))


def linked_repository(file: str) -> str | None:
    """The folder for which a file or link called `.git` stands, with its links resolved; None where it is none."""
    if os.path.islink(file):
        return os.path.realpath(file)
    try:
        link = LINK.fullmatch(_read(file))
    except OSError:
        return None
    return os.path.realpath(os.path.join(os.path.dirname(file), link[1])) if link else None


def harmless_settings(text: str) -> str:
    """The settings of a repository without those by which git runs programs, reads other files or changes folders."""
    lines, allowed = [], ""
    for line in text.split("\n"):
        section, setting = SECTION.fullmatch(line), SETTING.fullmatch(line)
        if line.lstrip().startswith("["):
            allowed = HARMLESS.get(section[1].lower(), "") if section else ""
        is_allowed = setting is not None and setting[1].lower() in allowed.split() and "::" not in setting[2]
        if not line.strip() or (section and allowed) or is_allowed:
            lines.append(line)
    return "\n".join(lines)


def harmless_steps(usual: Set[str], text: str) -> str:
    """The steps of a rebase that goes on, without those that run commands and are not among the usual ones."""
    return "\n".join(line for line in text.split("\n") if line in usual or not RUNS_COMMAND.fullmatch(line))


class RepositoryWatch:
    """The repositories of a project while one command runs in the sandbox.

    Mounts keep a command from changing what git obeys in repositories that are there. A mount needs something to lie
    on, so a stand-in that changes nothing is made for what is missing, and removed when no command needs it any more.
    So it is with settings files at the top, whose stand-ins are empty folders, which git does not see. What a command
    makes itself is looked at afterwards. Both methods take time.

    Args:
        project: with its links resolved.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._once, self._is_over = threading.Lock(), False
        self._locks: dict[str, int] = {}
        self._protected: set[tuple[int, int]] = set()
        self._links: dict[str, str] = {}
        self._commands: set[str] = set()

    # ------------------------------------------------------------ before

    def begin(self, repositories: Iterable[str], links: Iterable[str]) -> None:
        """Create stand-ins for missing entries, before anything is mounted.

        Args:
            repositories: folders, with their links resolved.
            links: files and links called `.git`.

        Raises:
            OSError: a repository cannot be read, or somebody else keeps it locked.
        """
        top = str(self._project / REPOSITORY)
        with undone_by(self._remove_stand_ins):
            self._hold(str(self._project))
            for name in TOP_NAMES:
                if not os.path.lexists(self._project / name):
                    _make_stand_in(str(self._project / name), None)
            for folder in dict.fromkeys((*repositories, *filter(os.path.isdir, [top]))):
                with suppress(FileNotFoundError):
                    self._begin_repository(folder)
            for file in links:
                self._protected.add(_identity(os.lstat(file)))
                self._note_link(file)

    def _begin_repository(self, folder: str) -> None:
        self._hold(folder)
        self._protected.add(_identity(os.stat(folder)))
        with suppress(OSError):
            self._commands.update(_read(os.path.join(folder, REBASE, TODO)).split("\n"))
        if folder in fixed_parts(folder):
            return
        for name, text in STAND_INS.items():
            path = os.path.join(folder, name)
            self._note_link(path)
            if not os.path.lexists(path):
                _make_stand_in(path, text)

    def _hold(self, folder: str) -> None:
        """Lock a folder, shared with all others who need its stand-ins."""
        if folder in self._locks:
            return
        opened, until_s = os.open(folder, FOLDER), time.monotonic() + MAX_WAIT_S
        self._locks[folder] = opened
        while not try_lock(opened, shared=True):
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", folder)
            time.sleep(PAUSE_S)

    def _note_link(self, path: str) -> None:
        with suppress(OSError):
            self._links[path] = os.readlink(path)

    # ------------------------------------------------------------ afterwards

    def end(self) -> list[str]:
        """Disable new content that git would obey outside of the sandbox; only the first call does so.

        Returns:
            A line for everything that was disabled.
        """
        with self._once:
            if self._is_over:
                return []
            self._is_over = True
            try:
                with OpenFolders(self._project) as folders:
                    return [*dict.fromkeys(self._disable_all(folders))]
            except (OSError, AgentError) as error:
                why = reason(error) if isinstance(error, OSError) else error.message
                return [f"the repositories of `{self._project.name}` cannot be looked at: {why}"]
            finally:
                self._remove_stand_ins()

    def _disable_all(self, folders: OpenFolders) -> Iterator[str]:
        closed = FOREIGN_FOLDERS | {REPOSITORY, STATE_FOLDER}
        for folder, entries in walk_folders(str(self._project), lambda entry: entry.name not in closed, opens=True):
            if is_bare(entry.name for entry in entries):
                yield from self._disable(folders, folder)
            path = os.path.join(folder, REPOSITORY)
            is_link = os.path.islink(path) or os.path.isfile(path)
            target = linked_repository(path) if is_link else path
            if target is not None and self._holds(target):
                yield from self._disable(folders, target)
            elif is_link and self._is_changed(path):
                inner = self._inner(path)
                _set_aside(folders.open(os.path.dirname(inner)), REPOSITORY)
                yield f"`{inner}` leads out of the project and is now `{inner}{DISABLED}`"

    def _disable(self, folders: OpenFolders, repository: str) -> Iterator[str]:
        """Disable the forbidden parts of a repository and of those in it."""
        nested = [folder for folder, is_one in nested_folders(repository) if is_one]
        around = [os.path.dirname(os.path.dirname(repository))] if self._is_of_worktree(repository) else []
        for folder in (*around, repository, *nested):
            inner = self._inner(folder)
            try:
                is_new = _identity(os.lstat(folder)) not in self._protected
                if is_new and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                    os.chmod(folder, 0o700)
                for name in self._disable_parts(folders.open(inner), folder):
                    path = os.path.join(inner, name)
                    yield f"`{path}` could run programs outside of the sandbox and is now `{path}{DISABLED}`"
            except OSError as error:
                if error.errno not in REPLACED:
                    yield f"`{inner}` cannot be looked at: {reason(error)}"

    def _disable_parts(self, opened: int, folder: str) -> Iterator[str]:
        """The names of the disabled entries in the open folder of a repository."""
        is_protected = _identity(os.fstat(opened)) in self._protected
        for name in STAND_INS:
            path = os.path.join(folder, name)
            if is_protected:
                if path in self._links and self._is_changed(path) and os.path.lexists(path):
                    _set_aside(opened, name)
                    yield name
            elif name != "hooks":
                if _keep(opened, name, partial(self._allowed_text, folder, name)):
                    yield name
            elif _has_hooks(opened):
                _set_aside(opened, name)
                yield name
        try:
            rebase = os.open(REBASE, FOLDER, dir_fd=opened)
        except FileNotFoundError:
            return
        except OSError:  # a link, or no folder
            _set_aside(opened, REBASE)
            yield REBASE
            return
        try:
            if _keep(rebase, TODO, partial(harmless_steps, self._commands)):
                yield f"{REBASE}/{TODO}"
        finally:
            os.close(rebase)

    def _allowed_text(self, folder: str, name: str, text: str) -> str:
        if name != "commondir":
            return harmless_settings(text)
        allowed = COMMON_FOLDER if self._is_of_worktree(folder) else "."
        return text if text.strip() == allowed else ""

    def _is_of_worktree(self, folder: str) -> bool:
        parent = os.path.dirname(folder)
        return os.path.basename(parent) == "worktrees" and self._holds(os.path.dirname(parent))

    def _is_changed(self, path: str) -> bool:
        """Whether something, that may be a link, is another one than before."""
        if os.path.islink(path):
            return self._links.get(path) != os.readlink(path)
        return path in self._links or _identity(os.lstat(path)) not in self._protected

    def _holds(self, path: str) -> bool:
        return Path(path).is_relative_to(self._project)

    def _inner(self, path: str) -> str:
        return "" if path == str(self._project) else os.path.relpath(path, self._project)

    def _remove_stand_ins(self) -> None:
        """Remove the stand-ins in folders that no other command needs; an empty folder of hooks stays."""
        for folder, opened in self._locks.items():
            if folder == str(self._project):
                remove_stand_ins(opened)
            else:
                for name, text in STAND_INS.items() if try_lock(opened) else ():
                    with suppress(OSError):
                        if text is not None and _read(name, opened) == text:
                            os.unlink(name, dir_fd=opened)
            os.close(opened)
        self._locks.clear()


def _make_stand_in(path: str, text: str | None) -> None:
    """Make a file or an empty folder, unless somebody else has, or nobody of this user could."""
    try:
        if text is None:
            os.mkdir(path)
        else:
            with open(path, "x") as file:
                file.write(text)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS):
            raise


def _read(path: str, parent: int | None = None) -> str:
    """The text of a regular file that is no link, one character a byte. Raises OSError."""
    opened = os.open(path, FILE, dir_fd=parent)
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return file.read(MAX_FILE_BYTES).decode("latin-1")


def _keep(parent: int, name: str, allowed: Callable[[str], str]) -> bool:
    """Reduce a file in an open folder to its permitted content; returns whether any was removed. Raises OSError."""
    try:
        text = _read(name, parent)
        rest = allowed(text)
    except FileNotFoundError:
        return False
    except OSError:
        text, rest = ".", ""
    if text == rest:
        return False
    _set_aside(parent, name)
    if rest:
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, 0o644, dir_fd=parent)
        with open(made, "wb") as file:
            file.write(rest.encode("latin-1"))
    return True


def _has_hooks(parent: int) -> bool:
    """Whether the folder of hooks in an open one holds any, or is no folder."""
    try:
        opened = os.open("hooks", FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return any(not name.endswith(".sample") for name in os.listdir(opened))
    finally:
        os.close(opened)


def _set_aside(parent: int, name: str) -> None:
    """Rename something in an open folder, so that git does not obey it. Raises OSError."""
    taken = {*os.listdir(parent)}
    free = next(each for number in count() if (each := f"{name}{DISABLED}{number or ''}") not in taken)
    os.rename(name, free, src_dir_fd=parent, dst_dir_fd=parent)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
