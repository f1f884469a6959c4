"""Summaries of the journals of a folder; a journal is read again only when its file has changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.store import SUFFIX, runs_folder

T = TypeVar("T")
# Of a file: when it was changed, its size, and which one it is.
Stamp = tuple[int, int, int]


class JournalFolder(Generic[T]):
    """The journals of a folder, looked at again and again.

    Args:
        folder: of the programs.
        read: makes of a journal what it tells, given what it told before; None the first time. Raises JournalError.
        is_settled: whether that stays so while the file is not changed.
    """

    def __init__(
        self, folder: Path, read: Callable[[Path, T | None], T], is_settled: Callable[[T], bool] = lambda told: True
    ) -> None:
        self._runs = runs_folder(folder)
        self._read = read
        self._is_settled = is_settled
        self._known: dict[str, tuple[Stamp, T | JournalError]] = {}

    def look(self, since: float = 0.0) -> dict[str, T | JournalError]:
        """The summary of each journal by the id of its run; the error where one cannot be read.

        Args:
            since: a second since the epoch; journals to which nothing was added since then are left out.
        """
        known, self._known = self._known, {}
        for path, stamp in self._stamps(self._names()):
            if stamp[0] >= since * 1e9:
                self._known[path.stem] = self._tell(path, stamp, known.get(path.stem))
        return self._by_run()

    def look_again(self, runs: Collection[str]) -> dict[str, T | JournalError]:
        """Like `look`, but only the journals of some runs are checked for changes."""
        names = [f"{run}{SUFFIX}" for run in sorted(runs)]
        for path, stamp in self._stamps(names):
            self._known[path.stem] = self._tell(path, stamp, self._known.get(path.stem))
        return self._by_run()

    def stamp(self) -> int:
        """A number that changes when a journal is added or removed, but not when one grows."""
        try:
            return self._runs.stat().st_mtime_ns
        except OSError:
            return 0

    def _by_run(self) -> dict[str, T | JournalError]:
        return {run: summary for run, (_, summary) in self._known.items()}

    def _tell(
        self, path: Path, stamp: Stamp, before: tuple[Stamp, T | JournalError] | None
    ) -> tuple[Stamp, T | JournalError]:
        """The summary of a journal; the earlier one if its file has not changed."""
        summary = None if before is None else before[1]
        is_known = before is not None and before[0] == stamp
        if before is not None and is_known and (isinstance(before[1], JournalError) or self._is_settled(before[1])):
            return before
        try:
            return stamp, self._read(path, None if isinstance(summary, JournalError) else summary)
        except JournalError as error:
            return stamp, error

    def _names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self._runs) if entry.name.endswith(SUFFIX))
        except OSError:
            return []  # nothing was recorded

    def _stamps(self, names: Collection[str]) -> Iterator[tuple[Path, Stamp]]:
        """The files with their change stamps; files that are removed meanwhile are left out."""
        for name in names:
            path = self._runs / name
            try:
                found = path.stat()
            except OSError:
                continue
            yield path, (found.st_mtime_ns, found.st_size, found.st_ino)
