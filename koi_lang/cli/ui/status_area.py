"""Lines to the bottom of a terminal, where they stay while other lines are written above them.

The cursor stays in the first of them, behind what is being typed. What is below the cursor is ours and can be taken
away without knowing how the terminal has broken its lines since, and whatever others write goes where the block was.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TextIO

from koi_lang.cli.ui.text import ending, size_of, width, writable

# Between two drawings, and while nothing but the time changes.
PAUSE_S = 0.1
IDLE_S = 1.0
CLEAR = "\r\x1b[J"
PROMPT = "> "
Fill = Callable[[int, int], Sequence[str]]


class StatusArea:
    """The live lines of a run.

    Args:
        fill: the lines for so many columns, at most so many of them.
        more: stands for what does not fit.

    Attributes:
        draft: what is being typed.
    """

    def __init__(self, stream: TextIO, fill: Fill, more: str = "…") -> None:
        self._stream = stream
        self._fill = fill
        self._more = more
        self._next: asyncio.TimerHandle | None = None
        self._drawn = ""
        self._held = 0
        self._closed = False
        self.draft = ""

    def change(self, delay_s: float = PAUSE_S) -> None:
        """Have the block drawn soon; many changes together are drawn once."""
        if self._closed or self._held:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        if self._next is not None:
            if self._next.when() <= when:
                return
            self._next.cancel()
        self._next = loop.call_later(delay_s, self._tick)

    def clear(self) -> None:
        """Take the block away, until it is drawn again."""
        if self._drawn:
            self._drawn = ""
            self._write(CLEAR)
            self.change()

    def hold(self) -> None:
        """Take the block away until `go_on` is called as often."""
        self._held += 1
        self._stop()
        self.clear()

    def go_on(self) -> None:
        """Draw again."""
        self._held -= 1
        self.change()

    def close(self) -> None:
        """Take the block away for good."""
        self._stop()
        self._closed = True
        self.clear()

    def draw(self) -> None:
        """Write the lines over those that are there."""
        columns, rows = self.size
        typed = PROMPT + ending(self.draft, columns - len(PROMPT) - 1, self._more) if self.draft else ""
        lines = [*([typed] if typed else []), *self._fill(columns - 1, max(rows - 1 - bool(typed), 1))]
        if not lines:
            self.clear()
            return
        up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        right = f"\x1b[{width(typed)}C" if typed else ""
        text = "\r" + "\n".join(f"{line}\x1b[K" for line in lines) + f"\x1b[J\r{up}{right}"
        if text != self._drawn:
            self._write(text)
            self._drawn = text

    def _tick(self) -> None:
        self._next = None
        if not self._is_in_front():
            self._drawn = ""  # somebody else writes here now
        else:
            self.draw()
        if self._drawn:
            self.change(IDLE_S)

    def _stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _write(self, text: str) -> None:
        try:
            self._stream.write(writable(text, self._stream))
            self._stream.flush()
        except OSError:  # the terminal is gone
            self._stop()
            self._closed, self._drawn = True, ""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal, as it is now."""
        return size_of(self._stream)

    def _is_in_front(self) -> bool:
        """Whether the process may write to the terminal as it likes; elsewhere than at a terminal it may."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True
