"""Files that change to starts of jobs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError
from koi_lang.schedules.triggers import FileTrigger
from koi_lang.service.scheduler import JobScheduler
from koi_lang.service.served_jobs import ServedJob
from koi_lang.service.store import Database
from koi_lang.system.globs import compile_glob, expand_braces

LOOK_S = 1.0
# Where a look takes long, the pause behind it is so many times as long.
PAUSES = 10
# Files of one start; others begin the next one.
MAX_CHANGES = 1000


class FileEvents:
    """Watches the files of jobs in intervals; a file that is still written waits for the next look.

    Args:
        folder: that patterns are relative to.
    """

    def __init__(self, database: Database, folder: Path, scheduler: JobScheduler, log: Callable[[str], None]) -> None:
        self._table = _StampTable(database)
        self._folder = folder
        self._scheduler = scheduler
        self._log = log
        self._seen: dict[str, Stamps] = {}
        self._is_told: set[str] = set()

    async def run(self) -> None:
        """Look until this is cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            begin = now()
            with suppress(SettingsError):  # what cannot be written down is found again
                await self.look()
            await asyncio.sleep(max(LOOK_S, PAUSES * (now() - begin)))

    async def look(self) -> None:
        """Begin the runs for changed files."""
        for job in self._scheduler.jobs:
            if isinstance(job.cause, FileTrigger):
                await self._look_at(job, job.cause.pattern)

    async def _look_at(self, job: ServedJob, pattern: str) -> None:
        known = self._table.find(job.id, pattern)
        seen = self._seen.get(job.id)
        found = await asyncio.to_thread(stamp_files, self._folder, pattern, {**(known or {}), **(seen or {})})
        self._seen[job.id] = found
        if len(found) >= MAX_FILES and job.id not in self._is_told:
            self._is_told.add(job.id)
            self._log(f"`{job.id}` looks at the first {MAX_FILES:,} files only")
        if known is None:
            self._table.keep(job.id, pattern, found)
        elif found == seen and found != known:
            self._take(job, pattern, known, found)

    def _take(self, job: ServedJob, pattern: str, known: Stamps, found: Stamps) -> None:
        """Have changes begin a run, unless one has to end before; then they are found again."""
        changed = list(_changes(known, found))[:MAX_CHANGES]
        if job.job.when_busy == "wait" and self._scheduler.is_busy(job):
            return
        if changed:
            payload = {"files": [{"path": path, "change": change} for path, change in changed]}
            stamps = [[path, _data(known.get(path)), _data(found.get(path))] for path, _ in changed]
            key = sha256(json.dumps(stamps).encode()).hexdigest()
            if self._scheduler.take_event(job, payload, key) is None:
                return  # too many wait
        paths = {path for path, _ in changed} if len(changed) == MAX_CHANGES else {*known, *found}
        now = {path: (found if path in paths else known).get(path) for path in {*known, *found}}
        self._table.keep(job.id, pattern, {path: stamp for path, stamp in sorted(now.items()) if stamp is not None})


def _changes(known: Stamps, found: Stamps) -> Sequence[tuple[str, str]]:
    """The changes of files by path, sorted; files with the same content have not changed."""
    changes = []
    for path in sorted({*known, *found}):
        before, after = known.get(path), found.get(path)
        if before is None or after is None:
            changes.append((path, "added" if before is None else "removed"))
        elif not before.is_same_content(after):
            changes.append((path, "changed"))
    return changes


def _data(stamp: Stamp | None) -> Any:
    return None if stamp is None else astuple(stamp)


class _StampTable:
    """The files of jobs as they were when something was begun for them last."""

    def __init__(self, database: Database) -> None:
        self._database, self._kept = database, dict[tuple[str, str], Stamps]()
        database.execute(
            "create table if not exists job_files (job text primary key, pattern text not null, stamps text not null)"
        )

    def find(self, job: str, pattern: str) -> Stamps | None:
        """The files of a job; None for a new one, or one with another pattern."""
        if (job, pattern) not in self._kept:
            rows = self._database.execute("select stamps from job_files where job = ? and pattern = ?", (job, pattern))
            if not rows:
                return None
            self._kept[job, pattern] = {path: Stamp(*about) for path, about in json.loads(rows[0][0]).items()}
        return self._kept[job, pattern]

    def keep(self, job: str, pattern: str, stamps: Stamps) -> None:
        """Keep the files of a job."""
        text = json.dumps({path: astuple(stamp) for path, stamp in stamps.items()})
        self._database.execute("insert or replace into job_files values (?, ?, ?)", (job, pattern, text))
        self._kept[job, pattern] = stamps


# Files that are looked at for one pattern; others are left out.
MAX_FILES = 20_000
# Bytes of a file whose content is compared; of larger ones time and size are.
MAX_FILE_BYTES = 64 << 20
ANY_FOLDERS = "**"
PASSED_OVER = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of a file at one look.

    Attributes:
        changed: when it was changed last, in nanoseconds.
        size: its bytes.
        content: the hash of its content; empty for a file that is too large.
    """

    changed: int
    size: int
    content: str

    def is_same_content(self, other: Stamp) -> bool:
        """Whether two files have one content, as far as is known."""
        return self.size == other.size and self.content == other.content and bool(self.content or self == other)


Stamps = Mapping[str, Stamp]


def stamp_files(folder: Path, pattern: str, known: Stamps) -> dict[str, Stamp]:
    """The files that a pattern means, by their path within the folder, with `/`.

    Links to folders are not followed; folders whose names begin with a dot are passed over unless the pattern names
    them. A file that cannot be read is left out.

    Args:
        known: as they were found before; what has the same time and size is not read again.
    """
    found: dict[str, Stamp] = {}
    patterns = [each.split("/") for each in expand_braces(pattern)]
    for path in _files(folder, "", compile_glob(pattern), patterns):
        with suppress(OSError):
            found[path] = _stamp(folder / path, known.get(path))
        if len(found) >= MAX_FILES:
            break
    return found


def _files(
    folder: Path, inside: str, is_meant: Callable[[str], bool], patterns: Sequence[Sequence[str]]
) -> Iterator[str]:
    """The paths of files below a folder, sorted; each once."""
    try:
        with os.scandir(folder / inside) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{inside}/{entry.name}" if inside else entry.name
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                if any(_may_hold(path.split("/"), parts) for parts in patterns):
                    yield from _files(folder, path, is_meant, patterns)
            elif (
                entry.is_file()
                and is_meant(path)
                and (not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(folder.resolve()))
            ):
                yield path


def _may_hold(path: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a folder may hold files that a pattern means."""
    for name, part in zip(path, parts, strict=False):
        if part == ANY_FOLDERS:
            return not any(_is_passed_over(each) for each in path[parts.index(part) :])
        if not compile_glob(part)(name) or (_is_passed_over(name) and name != part):
            return False
    return len(path) < len(parts)


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name in PASSED_OVER


def _stamp(path: Path, known: Stamp | None) -> Stamp:
    """Raises OSError."""
    about = path.stat()
    if known is not None and (known.changed, known.size) == (about.st_mtime_ns, about.st_size):
        return known
    content = sha256(path.read_bytes()).hexdigest()[:32] if about.st_size <= MAX_FILE_BYTES else ""
    return Stamp(about.st_mtime_ns, about.st_size, content)
