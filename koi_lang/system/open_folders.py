"""Folders of a project, opened one below the other, so that no link leads anywhere else."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from koi_lang.errors import AgentError, undone_by

# Nothing is followed, and nothing is waited for.
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
UNFOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
UNFOLLOWED |= getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines
FILE = os.O_RDONLY | UNFOLLOWED

# The folder of a project in which Koi keeps what runs leave.
STATE_FOLDER = ".koi"
# The key that signs journals: of the machine, in its configuration, and of the service of a project.
KEY_FILE = "signing.key"
SERVICE_KEY = f"{STATE_FOLDER}/{KEY_FILE}"
# How far the times of files may lie behind the clock.
CLOCK_STEP_S = 0.1
# What the system says where something else has taken the place of a file, a link or a folder around it.
REPLACED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EINVAL})


def make_state_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, with those around it; a new `.koi` among them is ignored by git as a whole. Raises OSError.

    One that exists is left as it is, so that a project may track parts of it. A link, which may be a stranger's, is not
    followed: neither `.koi` nor a folder in it is one.
    """
    for each in (folder, *folder.parents) if STATE_FOLDER in folder.parts else ():
        if each.is_symlink():
            raise OSError(errno.ELOOP, f"`{each.name}` is a link, which is not followed", str(each))
        if each.name == STATE_FOLDER:
            with suppress(FileExistsError):
                each.parent.mkdir(parents=True, exist_ok=True)
                each.mkdir(mode)
                rule = each / ".gitignore"
                rule.touch(0o600)
                rule.write_text("*\n", "utf-8")
            break
    folder.mkdir(mode, parents=True, exist_ok=True)


def make_state_file(path: Path) -> None:
    """Make a file below `.koi` for its owner where it is missing. Raises OSError for a link.

    One that is there is not opened: closing it would give up all locks of this process on a database.
    """
    make_state_folder(path.parent)
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"`{path.name}` is a link, which is not followed", str(path))
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, 0o600))


def resolve_links(path: Path) -> Path:
    """A path without links; missing parts are allowed. Raises RuntimeError for circular links."""
    found = path.resolve()
    # From 3.13 on Python leaves such links as they are.
    if any(map(os.path.islink, (found, *found.parents))):
        raise RuntimeError(f"`{path}` is a link that leads to itself")
    return found


def read_regular_file(path: str | Path, most_bytes: int, *, follows: bool = True) -> bytes:
    """The beginning of a file: one byte more than requested shows that it goes on. Raises OSError for other entries.

    Args:
        follows: whether it may be a link.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) if follows else FILE
    with open(os.open(path, flags), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError("it is no file")
        return opened.read(most_bytes + 1)


class OpenFolders:
    """A context that opens folders below a project; the last one stays open, since the next is often the same.

    Args:
        root: the folder of the project.

    Raises:
        AgentError: this system cannot open one below the other.
        OSError: the project cannot be opened.
    """

    def __init__(self, root: Path) -> None:
        if os.open not in os.supports_dir_fd:
            raise AgentError("this system has no folders that can be opened safely", help="Run it in WSL.")
        self.root = os.open(root, FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        self._path, self._held = "", self.root

    def __enter__(self) -> OpenFolders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        os.close(self.root)

    def open(self, path: str) -> int:
        """The descriptor of a folder, which counts until the next call. Raises OSError for a link on the way."""
        if path != self._path:
            self.forget()
            held = self.root
            for name in path.split("/") if path else ():
                try:
                    inner = os.open(name, FOLDER, dir_fd=held)
                finally:
                    if held != self.root:
                        os.close(held)
                held = inner
            self._path, self._held = path, held
        return self._held

    def forget(self) -> None:
        """Close the last folder, because it is about to be removed or replaced."""
        if self._held != self.root:
            os.close(self._held)
        self._path, self._held = "", self.root


def open_inside(root: Path, file: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """The descriptor of a file below a folder, opened one folder after the other, so that no link leads elsewhere.

    Args:
        root: the folder of the project.
        file: with all links resolved; a link that has come since then is not followed.
        flags: of `os.open`; pipes are not waited for.

    Raises:
        OSError: it is not there, or something has taken the place of a folder on the way.
    """
    with folder_of(root, file) as (held, name):
        return os.open(name, flags | UNFOLLOWED, mode, dir_fd=held)


def replace_inside(root: Path, file: Path, data: bytes) -> None:
    """Replace a file below a folder, or make it with the folders on its way; readers see the old bytes or the new ones.

    Its permissions stay. Where it cannot be written nothing has changed.

    Args:
        root, file: as in `open_inside`.

    Raises:
        OSError: as before, or there is no room.
    """
    with folder_of(root, file, make=True) as (held, name):
        beside = os.path.join(os.path.dirname(name), f".{file.name[:100]}.{secrets.token_hex(4)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, 0o666, dir_fd=held)
        with undone_by(os.unlink, beside, dir_fd=held):
            with open(descriptor, "wb") as written:
                written.write(data)
                written.flush()
                with suppress(FileNotFoundError, AttributeError):  # Windows has no such permissions
                    mode = stat.S_IMODE(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode)
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            os.replace(beside, name, src_dir_fd=held, dst_dir_fd=held)


@contextmanager
def folder_of(root: Path, file: Path, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
    """A context with the folder of a file open, as `open_folder` opens it, and the name of the file in it.

    Where a system cannot open one below the other, as Windows, that is no folder, and the path of the file.
    """
    if os.open not in os.supports_dir_fd:
        if make:
            file.parent.mkdir(parents=True, exist_ok=True)
        yield None, str(file)
        return
    held = open_folder(root, file.parent, make=make)
    try:
        yield held, file.name
    finally:
        os.close(held)


def open_folder(root: Path, folder: Path, *, make: bool = False) -> int:
    """The descriptor of a folder below another one; missing folders can be made.

    Raises:
        OSError: as before.
    """
    base = root.resolve()
    held = os.open(base, FOLDER)
    with undone_by(lambda: os.close(held)):
        for name in folder.relative_to(base).parts:
            inner = _open_next(held, name, make=make)
            os.close(held)
            held = inner
    return held


def _open_next(held: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=held)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody else was faster
        os.mkdir(name, dir_fd=held)
    return os.open(name, FOLDER, dir_fd=held)


def open_inner(held: int, name: str) -> int | None:
    """The descriptor of a folder that was listed in an open one; None where it is that no more. Raises OSError."""
    try:
        return os.open(name, FOLDER, dir_fd=held)
    except OSError as error:
        if error.errno in REPLACED:
            return None
        raise


def parent_of(path: str) -> str:
    """The folder around something, as a path from the project."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]
