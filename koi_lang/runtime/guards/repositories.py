"""Git repositories in a project: parts that no command may change, and the permitted content of new ones."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, reason, undone_by
from koi_lang.runtime.process_guard import start_guard
from koi_lang.settings import TOP_NAMES, cache_folder, remove_stand_ins
from koi_lang.system.file_locks import LockedRecord, try_lock
from koi_lang.system.open_folders import (
    CLOCK_STEP_S,
    FILE,
    FOLDER,
    REPLACED,
    STATE_FOLDER,
    UNFOLLOWED,
    OpenFolders,
    read_regular_file,
)

REPOSITORY = ".git"
# What others have written: there are very many files in there, and nobody works in them. Nothing in them is protected
# from a command, so that afterwards all of their repositories are looked at for what is new.
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
# Of these a folder consists that git takes for a repository; what is missing of the second is in another one.
BARE, OF_WORKTREE = frozenset({"HEAD", "objects", "refs"}), frozenset({"HEAD", "commondir"})
# Where a linked worktree has its common folder, from its own one.
COMMON_FOLDER = "../.."
LINK = re.compile(r"gitdir: (.+?)\s*", re.DOTALL)
REBASE, TODO = "rebase-merge", "git-rebase-todo"
RUNS_COMMAND = re.compile(r"\s*(?:exec|x)\b.*", re.DOTALL)
DISABLED = ".disabled"
# Where watches are recorded, in the folder for caches: what a project brings along says nothing about what was there.
RECORDS = "commands"
MAX_FILE_BYTES = 1_000_000
MAX_WAIT_S = 2.0
PAUSE_S = 0.003

MAX_HEAD_BYTES = 1000

# Ends the watches of a project whose processes were killed.
END_KILLED = f"import sys, pathlib, {__name__} as own; own.end_killed(pathlib.Path(sys.argv[1]), is_told=False)"

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


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder with these entries for a repository, under any name and in any place."""
    return BARE.issubset(names) or OF_WORKTREE.issubset(names)


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
    if not is_repository(names):
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

    A record of what was there lies in the folder for caches. Where this process is killed, a guard ends the watch by
    it; where the guard is killed, too, the next command in the project does.

    Args:
        project: with its links resolved.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._once, self._is_over = threading.Lock(), False
        self._locks: dict[str, int] = {}
        self._protected: dict[tuple[int, int], str] = {}
        self._links: dict[str, str] = {}
        self._commands: set[str] = set()
        self._record: LockedRecord | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._begun_ns = 0

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
                self._protected[_identity(os.lstat(file))] = file
                self._note_link(file)
            self._begun_ns = time.time_ns() - round(CLOCK_STEP_S * 1e9)
            # Where this user may write nothing there, or there is no shell, a kill leaves what it leaves.
            with suppress(OSError):
                self._record = LockedRecord.create(cache_folder() / RECORDS, digest_of(self._project))
                state = {
                    "begun": self._begun_ns,
                    "project": _identity(os.stat(self._project)),
                    "protected": [[path, identity, _age(path)] for identity, path in self._protected.items()],
                    "links": self._links,
                    "commands": sorted(self._commands),
                }
                self._record.write(state)
                self._guard = start_guard((sys.executable, "-P", "-c", END_KILLED, str(self._project)))

    def _begin_repository(self, folder: str) -> None:
        self._hold(folder)
        self._protected[_identity(os.stat(folder))] = folder
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

    # ------------------------------------------------------------ where the process is killed

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the watch of a killed process by its record.

        The numbers of files are others where a file system was mounted anew; then what is as old as it was is the same.
        """
        is_mounted_still = [*_identity(os.stat(self._project))] == state["project"]
        for folder in (str(self._project), *(path for path, _, _ in state["protected"])):
            with suppress(OSError):
                self._hold(folder)
        for path, identity, age in state["protected"]:
            if is_mounted_still:
                self._protected[identity[0], identity[1]] = path
            elif age is not None and age == _age(path):
                self._protected[_identity(os.stat(path, follow_symlinks=os.path.isdir(path)))] = path
        self._begun_ns = state["begun"]
        self._links.update(state["links"])
        self._commands.update(state["commands"])

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
                if self._guard is not None:
                    self._guard.communicate(b"\n")
                if self._record is not None:
                    self._record.close()

    def _disable_all(self, folders: OpenFolders) -> Iterator[str]:
        # Repositories may lie in one another, and in what others never look into.
        closed = str(self._project / STATE_FOLDER)
        for folder, entries in walk_folders(str(self._project), lambda entry: entry.path != closed, opens=True):
            names = {entry.name for entry in entries}
            if is_repository(names) and os.path.basename(folder) != REPOSITORY:
                yield from self._disable(folders, folder)
            if REPOSITORY not in names:
                continue
            path = os.path.join(folder, REPOSITORY)
            is_link = os.path.islink(path) or os.path.isfile(path)
            target = linked_repository(path) if is_link else path
            if target is not None and self._holds(target):
                yield from self._disable(folders, target)
            elif is_link and self._is_changed(path) and self._may_be_new(path):
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
            elif not self._may_be_new(path):
                continue
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
            if self._may_be_new(os.path.join(folder, REBASE, TODO)) and _keep(
                rebase, TODO, partial(harmless_steps, self._commands)
            ):
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

    def _may_be_new(self, path: str) -> bool:
        """Whether the command may have made or changed something, a folder with what is in it.

        That is a question in folders of others alone: elsewhere it was protected, or is new.
        """
        if FOREIGN_FOLDERS.isdisjoint(self._inner(path).split("/")):
            return True
        with suppress(OSError):
            inside = [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else []
            return any(os.lstat(each).st_ctime_ns >= self._begun_ns for each in (path, *inside))
        return os.path.lexists(path)

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


def digest_of(project: Path) -> str:
    """A name for a project in the folder of records."""
    return sha256(os.fsencode(project)).hexdigest()[:32]


def end_killed(project: Path, *, is_told: bool = True) -> list[str]:
    """End the watches of a project whose processes were killed, and return a line for everything that was disabled.

    Args:
        project: with its links resolved.
        is_told: whether the lines reach a person; they are kept for the next caller otherwise.
    """
    lines: list[str] = []
    for record in LockedRecord.take_over(cache_folder() / RECORDS, digest_of(project)):
        disabled, state = [], record.read()
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
            disabled = [str(line) for line in state.get("disabled", [])]
            if "protected" in state:
                watch = RepositoryWatch(project)
                watch.restore(state)
                disabled = watch.end()
        lines += disabled
        is_kept = bool(disabled) and not is_told
        with suppress(OSError):
            record.write({"disabled": disabled})
        record.close(is_kept=is_kept)
    return lines


def _age(path: str) -> int | None:
    """When a repository, or a link to one, was last configured, in nanoseconds, which no command can set back."""
    with suppress(OSError):
        return os.lstat(os.path.join(path, "config") if os.path.isdir(path) else path).st_ctime_ns
    return None


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
