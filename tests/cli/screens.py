"""A program in a pseudo-terminal to what its screen shows."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

from tests import forks
from tests.limits import LIMIT_S

SCREENS = Path(__file__).with_name("screens")
# What is drawn at once may arrive in parts, which are not further apart than this.
PART_S = 0.05
RESUME = re.compile(r"koi resume [0-9a-f]+")
TIME = re.compile(r"\b(?:\d+m\d\ds|\d+(?:\.\d)? ?s)\b")


class Shown:
    """A `koi` command in a terminal, and the screen of that; with an interpreter of its own if it is to run alone."""

    def __init__(
        self, folder: Path, words: list[str], columns: int, rows: int, alone: bool = False, **environment: str
    ) -> None:
        known = {**os.environ, "PYTHONPATH": str(forks.CHECKOUT), "TERM": "xterm"}
        python, *others = [sys.executable, *forks.KOI, *words] if alone else forks.koi(*words)
        self.child = pexpect.spawn(
            python,
            others,
            cwd=folder,
            env={**known, "PYTHONUTF8": "1", **environment},
            dimensions=(rows, columns),
            timeout=LIMIT_S,
        )
        self.child.delaybeforesend = None
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self._since = time.monotonic()

    def until(self, text: str) -> str:
        """The screen as soon as it shows a text."""
        self._read_until(lambda: text in self.text())
        return self.text()

    def until_gone(self, text: str) -> str:
        """The screen as soon as a text is not on it any more."""
        self._read_until(lambda: text not in self.text())
        return self.text()

    def end(self) -> str:
        """The screen when the command has ended."""
        while self._read():
            pass
        self.child.wait()  # closing it would send signals to a child that has yet to end
        self.child.close()
        return self.text()

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal."""
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    @property
    def seconds(self) -> float:
        """How long the command has run so far."""
        return time.monotonic() - self._since

    def text(self) -> str:
        """The lines of the screen, with times and ids of runs masked; the place of the cursor is not shown."""
        lines = [line.rstrip() for line in self.screen.display]
        return RESUME.sub("koi resume #", TIME.sub("#s", "\n".join(lines).rstrip())) + "\n"

    def _read_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            assert self._read(), f"the command has ended:\n{self.text()}"
        while select.select([self.child], [], [], PART_S)[0] and self._read():
            pass

    def _read(self) -> bool:
        """Take in what has been written; false once nobody has the terminal any more.

        That is later than the end of the child: what was forked for it may still have to be killed, and would take
        the end of its terminal for somebody's who has closed the window.
        """
        if not select.select([self.child], [], [], LIMIT_S)[0]:
            raise TimeoutError(f"nothing has been written for {LIMIT_S:g} s:\n{self.text()}")
        try:
            data = os.read(self.child.child_fd, 65536)
        except OSError:  # how Linux tells it
            data = b""
        if not data:
            return False
        self.written += data
        self._stream.feed(data)
        return True


def golden(name: str, actual: str, accept: bool) -> str:
    """What a golden screen shows; it is rewritten first where that is wanted."""
    path = SCREENS / f"{name}.txt"
    if accept:
        path.write_text(actual, "utf-8")
    return path.read_text("utf-8")
