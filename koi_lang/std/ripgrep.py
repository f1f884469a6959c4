"""Ripgrep as a filter of files that contain one of some words; the pattern itself is matched here."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# So many bytes of names are given to it at once, and so long it may take for them, in seconds.
MAX_NAMES, MAX_S = 400_000, 30.0
OPTIONS = (
    *("--files-with-matches", "--null", "--no-config", "--no-messages", "--no-ignore", "--hidden", "--color=never"),
    *("--text", "--encoding=none", "--no-mmap", "--fixed-strings"),
)
FOUND, FOUND_NONE = 0, 1


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """An installed ripgrep.

    Attributes:
        program: its file.
        root: the folder of the project that is searched.
    """

    program: str
    root: Path

    @classmethod
    def find(cls, root: Path) -> Ripgrep | None:
        """The one that the system finds, unless it is none of its own but a file of the project."""
        program = shutil.which("rg")
        if program is None or not Path(program).is_absolute() or Path(program).resolve().is_relative_to(root):
            return None
        return cls(program, root)

    def files_with(
        self, words: Sequence[str], files: Sequence[str], *, ignore_case: bool, stop: Callable[[], None]
    ) -> set[str] | None:
        """The files that contain one of some words; None where it fails for any reason.

        Args:
            words: of ASCII. With `ignore_case` files may be among them that hold none.
            stop: raises where nobody waits any more.
        """
        patterns = [part for word in words for part in ("-e", word)]
        case = "--ignore-case" if ignore_case else "--case-sensitive"
        found: set[str] = set()
        for batch in _batches(files):
            output = self._run([self.program, *OPTIONS, case, *patterns, "--", *batch], stop)
            if output is None:
                return None
            found.update(output)
        return found

    def _run(self, words: list[str], stop: Callable[[], None]) -> list[str] | None:
        end_s = time.monotonic() + MAX_S
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    words, cwd=self.root, env={}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
                )
            except OSError:
                return None
            try:
                status = _wait(process, end_s, stop)
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            names = output.read().decode("utf-8", "surrogateescape")
        return names.split("\0")[:-1] if status in (FOUND, FOUND_NONE) else None


def _wait(process: subprocess.Popen[bytes], end_s: float, stop: Callable[[], None]) -> int | None:
    """The exit code of a process; None where it takes too long."""
    while time.monotonic() < end_s:
        stop()
        try:
            return process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    return None


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for file in files:
        size += len(file.encode()) + 1
        if size > MAX_NAMES and batch:
            yield batch
            batch, size = [], len(file.encode()) + 1
        batch.append(file)
    if batch:
        yield batch
