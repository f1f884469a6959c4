"""A folder to the journals in it: finding, listing, repairing and deleting them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import Header, line_of
from koi_lang.runtime.journal.reader import lines, opened, read_header

SUFFIX, TORN = ".jsonl", ".torn"
LAST = "last"
PIECE = 1 << 16


def runs_folder(folder: Path) -> Path:
    """Where the journals of programs that are run in a folder are."""
    return folder / ".koi" / "runs"


def path_of(folder: Path, run: str) -> Path:
    """The journal of a run, whether or not there is one."""
    return runs_folder(folder) / f"{run}{SUFFIX}"


def journals(folder: Path) -> list[Path]:
    """The journals of a folder, those of the earliest runs first."""
    return sorted(runs_folder(folder).glob(f"*{SUFFIX}"), key=_started)


def _started(path: Path) -> tuple[float, str]:
    try:
        return read_header(path).started, path.name
    except JournalError:
        return _changed(path), path.name


def _changed(path: Path) -> float:
    """When a file was written last; 0 where it has been removed meanwhile."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find(folder: Path, run: str) -> Path:
    """The journal that an id, the beginning of one, or `last` names. Raises JournalError."""
    known = journals(folder)
    if not known:
        help = "`koi run --record FILE` writes a journal."
        raise JournalError(f"there are no journals in `{runs_folder(folder)}`", help=help)
    if run == LAST:
        return known[-1]
    found = [path for path in known if run and path.stem.startswith(run)]
    exact = [path for path in found if path.stem == run]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise JournalError(f"there is no run `{run}`", help="`koi runs list` shows the runs of this folder.")
    several = ", ".join(f"`{path.stem}`" for path in found[:6])
    raise JournalError(f"`{run}` is the beginning of several runs", help=f"Write more of one of these: {several}.")


def is_running(path: Path) -> bool:
    """Whether the run of a journal goes on. Raises JournalError when it cannot be read."""
    with opened(path) as file:
        return not _locked(file, fcntl.LOCK_SH)


def repair(path: Path) -> int:
    """Cut a torn last line off and keep it beside the journal, in `<id>.torn`; gives how many bytes that were.

    Raises:
        JournalError: the file is no journal, or its run goes on; then it is left as it is.
    """
    read_header(path)
    with _alone(path) as file:
        end = _end_of_whole_lines(file)
        file.seek(end)
        torn = file.read()
        if torn:
            _keep(path.with_suffix(TORN), torn)
            file.truncate(end)
            os.fsync(file.fileno())
    return len(torn)


def delete(path: Path) -> None:
    """Remove a journal and what was cut off it. Raises JournalError when its run goes on."""
    with _alone(path):
        path.unlink()
        path.with_suffix(TORN).unlink(missing_ok=True)


def export(path: Path, target: BinaryIO, header: Header) -> int:
    """Write a header and all entries that can be read; gives how many lines were left out. Raises JournalError."""
    left_out = 0
    target.write(line_of(header, str))
    for line in lines(path):
        if line.entry is None:
            left_out += 1
        else:
            target.write(line.text)
    return left_out


@contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """A journal that nobody else writes. Raises JournalError."""
    with opened(path, "r+b") as file:
        if not _locked(file, fcntl.LOCK_EX):
            raise JournalError(f"the run `{path.stem}` goes on", help="Wait until it has ended, or end it first.")
        yield file


def _locked(file: BinaryIO, how: int) -> bool:
    """Whether a file could be locked, until it is closed."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_of_whole_lines(file: BinaryIO) -> int:
    """The position behind the last line break."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - PIECE)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _keep(path: Path, torn: bytes) -> None:
    """Add bytes to a file and have them on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(torn)
        file.flush()
        os.fsync(file.fileno())
