"""The files of a session, for people: listed, read, written and removed below one folder that nothing leads out of."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from koi_lang.errors import AgentError, KoiError, PermissionDeniedError, reason
from koi_lang.runtime.guards.code_files import as_systems_see
from koi_lang.runtime.guards.paths import SETTINGS, project_path
from koi_lang.system.open_folders import UNFOLLOWED, open_folder, open_inside

# Bytes of one file, and of all files of a session; and how many of them are listed.
MOST_IN_FILE, MOST_IN_FOLDER, MOST_LISTED = 100 << 20, 1 << 30, 10_000
LONGEST_PATH = 1000


class FileTooLargeError(KoiError):
    """A file has no room."""


class FileMissingError(KoiError):
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of a session.

    Attributes:
        path: below its folder, with `/` between the parts.
        size: in bytes.
        changed: seconds since the epoch.
    """

    path: str
    size: int
    changed: float

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"path": self.path, "bytes": self.size, "changed": self.changed}


class SessionFiles:
    """The folder of a session; it need not exist.

    Args:
        most_in_file: bytes that a file may have.
        most_in_folder: bytes that all files together may have.
    """

    def __init__(self, root: Path, most_in_file: int = MOST_IN_FILE, most_in_folder: int = MOST_IN_FOLDER) -> None:
        self.root, self.most_in_file, self._most_in_folder = root, most_in_file, most_in_folder

    async def list_all(self) -> list[SessionFile]:
        """The files, sorted by their paths; hidden ones, links and devices are left out."""
        return await asyncio.to_thread(lambda: sorted(self._find_files(), key=lambda file: file.path)[:MOST_LISTED])

    def _find_files(self) -> Iterator[SessionFile]:
        if not self.root.is_dir():
            return
        for folder, inner, names, descriptor in os.fwalk(self.root, follow_symlinks=False):
            inner[:] = [name for name in inner if not name.startswith(".")]
            for name in names:
                with suppress(OSError):  # it was removed meanwhile
                    about = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode) and not name.startswith("."):
                        path = Path(folder, name).relative_to(self.root).as_posix()
                        yield SessionFile(path, about.st_size, about.st_mtime)

    def open(self, path: str) -> tuple[SessionFile, BinaryIO]:
        """A file with its content, which the caller closes.

        Raises:
            FileMissingError: there is none.
            KoiError: the path leads out of the folder, or to something hidden.
        """
        content = os.fdopen(self._open_to_read(path, self._place(path)), "rb", buffering=0)
        about = os.fstat(content.fileno())
        if not stat.S_ISREG(about.st_mode):
            content.close()
            raise _missing_error(path)
        return SessionFile(path, about.st_size, about.st_mtime), content

    def _open_to_read(self, path: str, place: Path) -> int:
        try:
            return open_inside(self.root, place)
        except OSError as error:
            raise _missing_error(path) from error

    async def write(self, path: str, content: AsyncIterable[bytes], size: int | None = None) -> SessionFile:
        """Make or replace a file as a whole: readers see all of it or what was there before.

        Args:
            size: of the content in bytes, where it is known.

        Raises:
            FileTooLargeError: it has no room, which is found as early as it can be.
            KoiError: the path leads out of the folder or to something hidden, or it cannot be written.
        """
        place = self._place(path)
        if as_systems_see(place.name) in SETTINGS:
            raise PermissionDeniedError(f"`{path}` cannot be written here", help="It says what programs may do.")
        room = await asyncio.to_thread(self._room)
        if size is not None and size > room:
            raise self._too_large_error(path, room)
        with _unwritable_as_error(path):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = await asyncio.to_thread(open_folder, self.root, place.parent, make=True)
            try:
                return await self._write_inside(folder, place.name, path, content, room)
            finally:
                os.close(folder)

    async def _write_inside(
        self, folder: int, name: str, path: str, content: AsyncIterable[bytes], room: int
    ) -> SessionFile:
        beside, size = f".{secrets.token_hex(8)}.part", 0
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED, 0o600, dir_fd=folder)
        try:
            async for piece in content:
                size += len(piece)
                if size > room:
                    raise self._too_large_error(path, room)
                await asyncio.to_thread(_write_all, file, piece)
            await asyncio.to_thread(os.fsync, file)
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            return SessionFile(path, size, os.fstat(file).st_mtime)
        finally:
            os.close(file)
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)

    def _room(self) -> int:
        """Bytes that a further file may have."""
        return max(0, min(self.most_in_file, self._most_in_folder - sum(file.size for file in self._find_files())))

    def _too_large_error(self, path: str, room: int) -> FileTooLargeError:
        help = f"A file may have {self.most_in_file >> 20} MB, all of a session {self._most_in_folder >> 20} MB."
        return FileTooLargeError(f"`{path}` is too large: there is room for {room} bytes", help=help)

    async def remove(self, path: str) -> None:
        """Remove a file. Raises as `open`."""
        place = self._place(path)
        try:
            folder = open_folder(self.root, place.parent)
        except OSError as error:
            raise _missing_error(path) from error
        try:
            os.unlink(place.name, dir_fd=folder)
        except OSError as error:
            raise _missing_error(path) from error
        finally:
            os.close(folder)

    def _place(self, path: str) -> Path:
        """The file of a path, with all links resolved. Raises KoiError."""
        if len(path) > LONGEST_PATH or "\0" in path:
            raise AgentError("the text is no path", help="Write one such as `notes/today.md`.")
        place = project_path(self.root, path)
        if place == self.root.resolve():
            raise _missing_error(path)
        return place


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextmanager
def _unwritable_as_error(path: str) -> Iterator[None]:
    """A context in which failures of the system become errors for people."""
    try:
        yield
    except OSError as error:
        raise AgentError(
            f"`{path}` cannot be written: {reason(error)}", help="Choose another name, or make room."
        ) from error


def _missing_error(path: str) -> FileMissingError:
    return FileMissingError(f"there is no file `{path}`", help="The list of files shows what there is.")
