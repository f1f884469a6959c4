"""The files of a program to the moment at which one of them has another content.

They are looked at, a few times a second: systems differ in how they tell of changes, some file systems do not, and a
program has few files. Editors write a file anew, or put another one in its place; both come to the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event

from koi_lang.compiler.compile import check_program
from koi_lang.program.cache import digest
from koi_lang.program.files import DiskFiles, absolute

# How often files are looked at; what has changed is read when it stays the same for as long.
LOOK_S = 0.2
Mark = tuple[int, int, int]


class SourceWatch:
    """Waits for changes of some files.

    Args:
        files: the content hash of each, as it was read; None for one that is not there.
        more: files that belong to them meanwhile, such as modules that are imported late.
    """

    def __init__(self, files: Mapping[str, str | None], more: Callable[[], Iterable[str]] = tuple) -> None:
        self._known, self._more = dict(files), more
        self._marks: dict[str, Mark | None] = {}

    @property
    def count(self) -> int:
        """How many of the files there are."""
        return sum(content is not None for content in self._known.values())

    def wait(self, stop: Event) -> list[str]:
        """Wait until some files have another content, and no other one is being written; gives these files.

        What is written several times in quick succession is one change. Empty when it was stopped before.
        """
        last: dict[str, Mark | None] = {}
        while not stop.wait(LOOK_S):
            self._add_more()
            marks = {file: _mark(file) for file in self._known}
            is_settled, last = marks == last, marks
            changed = self._take_changed(marks) if is_settled and marks != self._marks else []
            if changed:
                return changed
        return []

    def _add_more(self) -> None:
        for file in self._more():
            if file not in self._known:
                self._known[file], self._marks[file] = content_hash(file), _mark(file)

    def _take_changed(self, marks: dict[str, Mark | None]) -> list[str]:
        """The files whose content is another one, which is known from now on."""
        known = self._marks
        now = {file: content_hash(file) for file, mark in marks.items() if file not in known or mark != known[file]}
        changed = [file for file, content in now.items() if content != self._known[file]]
        self._known |= now
        self._marks = marks
        return changed


def files_asked_for(path: str) -> dict[str, str | None]:
    """The files that a program with errors consists of, and those that it lacks, with their content hashes."""
    files = _NotingFiles()
    with suppress(OSError):
        check_program(absolute(path), files)
    return {file: content_hash(file) for file in (absolute(path), *files.asked)}


class _NotingFiles(DiskFiles):
    """The file system, with what was looked for in it."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def read(self, path: str) -> bytes:
        self.asked.add(path)
        return super().read(path)

    def is_file(self, path: str) -> bool:
        self.asked.add(path)
        return super().is_file(path)


def content_hash(file: str) -> str | None:
    """The hash of a file's content; None where it cannot be read."""
    try:
        return digest(Path(file).read_bytes())
    except OSError:
        return None


def _mark(file: str) -> Mark | None:
    """What changes when a file is written or replaced; None where there is none."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
