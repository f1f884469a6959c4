"""The files of a session, for people: listed, read, written and removed below one folder that nothing leads out of."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from koi_lang.errors import AgentError, KoiError, PermissionDeniedError, reason
from koi_lang.runtime.guards.file_names import as_systems_see
from koi_lang.runtime.guards.paths import SETTINGS, project_path
from koi_lang.settings.service import ServiceLimits
from koi_lang.system.open_folders import UNFOLLOWED, open_folder, open_inside

# Bytes of one file, and of all files of a session; and how many of them are listed.
MAX_FILE_BYTES = 100 << 20
MAX_FOLDER_BYTES = 1 << 30
MAX_LISTED = 10_000
# Bytes of the files of all sessions of a user, and of everybody, unless `[serve.limits]` says something else.
DEFAULT_USER_BYTES, DEFAULT_TOTAL_BYTES = 10 << 30, 100 << 30
MAX_PATH_CHARS = 1000
# Uploads that are under way, and those of a process that was killed.
PART = re.compile(r"\.[0-9a-f]{16}\.part")
# How long the size of a session counts to which nobody uploads.
REMEMBERED_S = 60.0

# Room for an upload of so many bytes, or of any number, within a context that gives it.
Reserve: TypeAlias = Callable[[int | None], AbstractAsyncContextManager[int]]


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


@dataclass(frozen=True, slots=True)
class SpaceLimits:
    """How many bytes files may have: one, those of a session, those of a user, and all of them."""

    file: int = MAX_FILE_BYTES
    session: int = MAX_FOLDER_BYTES
    user: int = DEFAULT_USER_BYTES
    all: int = DEFAULT_TOTAL_BYTES

    @classmethod
    def of(cls, limits: ServiceLimits) -> SpaceLimits:
        """Those of a service."""
        given = {"user": limits.megabytes_per_user, "all": limits.megabytes}
        return cls(**{name: megabytes << 20 for name, megabytes in given.items() if megabytes is not None})


class FileSpace:
    """The disk quota of all sessions of a service: used and reserved space.

    Args:
        root_of: the folder of the files of a session.
        owners: the sessions there are, each with its user.
    """

    def __init__(
        self, root_of: Callable[[str], Path], owners: Callable[[], Mapping[str, str]], limits: SpaceLimits
    ) -> None:
        self._root_of = root_of
        self._owners = owners
        self._limits = limits
        self._lock = asyncio.Lock()
        self._reserved: Counter[str] = Counter()
        # What has been uploaded since a session was measured.
        self._uploaded: Counter[str] = Counter()
        self._sizes: dict[str, tuple[float, int]] = {}

    @asynccontextmanager
    async def reserve(self, run: str, size: int | None, owner: str = "") -> AsyncIterator[int]:
        """Room for a file of a session while it is uploaded; others see it as taken.

        Args:
            size: in bytes, where it is known; without it, as much as there is.
            owner: for a session that begins with a copy of many files, which has none yet.

        Raises:
            FileTooLargeError: there is not so much.
        """
        async with self._lock:
            owners = {**self._owners(), **({run: owner} if owner else {})}
            taken = await asyncio.to_thread(self._measure, {run, *owners}, run)
            own = sum(size for each, size in taken.items() if owners.get(each) == owners.get(run))
            limits, is_file = self._limits, not owner
            rooms = [
                (limits.session - taken[run], f"all files of a session may have {limits.session >> 20:,} MB"),
                (limits.user - own, f"all files of your sessions may have {limits.user >> 20:,} MB"),
                (limits.all - sum(taken.values()), f"all files of the service may have {limits.all >> 20:,} MB"),
                *([(limits.file, f"a file may have {limits.file >> 20:,} MB")] if is_file else ()),
            ]
            room, what = min(rooms)
            if size is not None and size > room:
                raise _too_large_error(room, what)
            bytes_granted = room if size is None else size
            self._reserved[run] += bytes_granted
        try:
            yield bytes_granted
        finally:
            self._uploaded[run] += bytes_granted
            self._reserved[run] -= bytes_granted

    def _measure(self, runs: Set[str], run: str) -> dict[str, int]:
        """The used or reserved bytes of sessions: one is measured now, with others that are overdue.

        What is left of uploads of an earlier process goes with the first look at a session.
        """
        now = time.monotonic()
        for each in runs:
            at, _ = self._sizes.get(each, (now, 0))
            if each == run or each not in self._sizes or now - at > REMEMBERED_S:
                self._uploaded.pop(each, None)
                self._sizes[each] = now, measure_files(self._root_of(each), sweeps=each not in self._sizes)
        self._sizes = {each: self._sizes[each] for each in runs}
        return {each: self._sizes[each][1] + self._reserved[each] + self._uploaded[each] for each in runs}


def measure_files(root: Path, *, sweeps: bool = False) -> int:
    """The bytes of all files below a folder but those of uploads under way, which have reserved theirs.

    Args:
        sweeps: whether none is under way, so that what is left of uploads is removed.
    """
    size = 0
    if root.is_dir():
        for _, _, names, descriptor in os.fwalk(root, follow_symlinks=False):
            for name in names:
                with suppress(OSError):  # it was removed meanwhile
                    if PART.fullmatch(name):
                        if sweeps:
                            os.unlink(name, dir_fd=descriptor)
                        continue
                    about = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    size += about.st_size if stat.S_ISREG(about.st_mode) else 0
    return size


def without_parts(folder: str, names: list[str]) -> set[str]:
    """The names in a folder that no copy of it gets: those of uploads under way."""
    return {*filter(PART.fullmatch, names)}


class SessionFiles:
    """The folder of a session; it need not exist.

    Args:
        reserve: gives room for a file that is written.
    """

    def __init__(self, root: Path, reserve: Reserve) -> None:
        self.root, self._reserve = root, reserve

    async def list_all(self) -> list[SessionFile]:
        """The files, sorted by their paths; hidden ones, links and devices are left out."""
        return await asyncio.to_thread(lambda: sorted(self._find_files(), key=lambda file: file.path)[:MAX_LISTED])

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
        place = self._place(path)
        content = os.fdopen(self._open_to_read(path, place), "rb", buffering=0)
        about = os.fstat(content.fileno())
        if not stat.S_ISREG(about.st_mode):
            content.close()
            raise _missing_error(path)
        return SessionFile(self._path_of(place), about.st_size, about.st_mtime), content

    def _open_to_read(self, path: str, place: Path) -> int:
        try:
            return open_inside(self.root, place)
        except OSError as error:
            raise _missing_error(path) from error

    async def write(self, path: str, content: AsyncIterable[bytes], size: int | None = None) -> SessionFile:
        """Create or replace a file atomically.

        Args:
            size: of the content in bytes, where it is known.

        Raises:
            FileTooLargeError: it has no room, which is found as early as it can be.
            KoiError: the path leads out of the folder or to something hidden, or it cannot be written.
        """
        place = self._place(path)
        if as_systems_see(place.name) in SETTINGS:
            raise PermissionDeniedError(f"`{path}` cannot be written here", help="It says what programs may do.")
        async with self._reserve(size) as room:
            with _unwritable_as_error(path):
                self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder = await asyncio.to_thread(open_folder, self.root, place.parent, make=True)
                try:
                    return await self._write_inside(folder, place.name, self._path_of(place), content, room)
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
                    raise _too_large_error(room, f"`{path}` goes on behind that")
                await asyncio.to_thread(_write_all, file, piece)
            await asyncio.to_thread(os.fsync, file)
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            return SessionFile(path, size, os.fstat(file).st_mtime)
        finally:
            os.close(file)
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)

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
        if len(path) > MAX_PATH_CHARS or "\0" in path:
            raise AgentError("the text is no path", help="Write one such as `notes/today.md`.")
        place = project_path(self.root, path)
        if place == self.root.resolve():
            raise _missing_error(path)
        return place

    def _path_of(self, place: Path) -> str:
        """The path under which a file is listed: `c/d` for `c//d`."""
        return place.relative_to(self.root.resolve()).as_posix()


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


def _too_large_error(room: int, why: str) -> FileTooLargeError:
    help = "Remove files or runs, or ask whoever runs the service for more: `[serve.limits]` in `koi.toml`."
    return FileTooLargeError(f"there is room for {max(0, room):,} bytes: {why}", help=help)


def _missing_error(path: str) -> FileMissingError:
    return FileMissingError(f"there is no file `{path}`", help="The list of files shows what there is.")
