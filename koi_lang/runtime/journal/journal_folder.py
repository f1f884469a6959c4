"""What the journals of a folder tell, each of them read again only when its file has changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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
        self._runs, self._read, self._is_settled = runs_folder(folder), read, is_settled
        self._known: dict[str, tuple[Stamp, T | JournalError]] = {}

    def look(self, since: float = 0.0) -> dict[str, T | JournalError]:
        """What each journal tells now, by the id of its run; the error where one cannot be read.

        Args:
            since: a second since the epoch; journals to which nothing was added since then are left out.
        """
        known, self._known = self._known, {}
        for path, stamp in self._stamps():
            if stamp[0] < since * 1e9:
                continue
            before = known.get(path.stem)
            is_known = before is not None and before[0] == stamp and self._is_final(before[1])
            self._known[path.stem] = before if is_known and before is not None else (stamp, self._tell(path, before))
        return {run: told for run, (_, told) in self._known.items()}

    def _is_final(self, told: T | JournalError) -> bool:
        return isinstance(told, JournalError) or self._is_settled(told)

    def _tell(self, path: Path, before: tuple[Stamp, T | JournalError] | None) -> T | JournalError:
        earlier = None if before is None or isinstance(before[1], JournalError) else before[1]
        try:
            return self._read(path, earlier)
        except JournalError as error:
            return error

    def _stamps(self) -> Iterator[tuple[Path, Stamp]]:
        """The files, and what of them changes with their content; those that are removed meanwhile are left out."""
        try:
            names = sorted(entry.name for entry in os.scandir(self._runs) if entry.name.endswith(SUFFIX))
        except OSError:
            return  # nothing was recorded
        for name in names:
            path = self._runs / name
            try:
                found = path.stat()
            except OSError:
                continue
            yield path, (found.st_mtime_ns, found.st_size, found.st_ino)
