"""Lines above an input: what comes close together is written together, so that the input is seldom drawn anew."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application

PAUSE_S = 0.05


class Scrollback:
    """What is written above the input of a terminal.

    The terminal stays as the input needs it: keys that are pressed meanwhile would else be shown twice, and Enter
    would be taken for Ctrl-J.
    """

    def __init__(self, app: Application[Any]) -> None:
        self._app = app
        self._waiting: list[str] = []
        self._news = asyncio.Event()

    def add(self, text: str) -> None:
        """Have some lines written soon."""
        self._waiting.append(text + "\n")
        self._news.set()

    async def write(self) -> None:
        """Write what is added, until this is cancelled."""
        while True:
            await self._news.wait()
            if self._app.output.responds_to_cpr:
                # Where the cursor was must not be taken for where it is afterwards.
                await self._app.renderer.wait_for_cpr_responses()
            self.flush()
            await asyncio.sleep(PAUSE_S)

    def flush(self) -> None:
        """Write what is waiting."""
        text, self._waiting = "".join(self._waiting), []
        self._news.clear()
        if not text:
            return
        app, is_drawn = self._app, self._app.is_running and not self._app.is_done
        if is_drawn:
            app.renderer.erase()
        app.output.write_raw(text.replace("\n", "\r\n"))
        app.output.flush()
        if is_drawn:
            app.renderer.reset()
            app.renderer.request_absolute_cursor_position()
            app.invalidate()


class CapturedStream(io.TextIOBase):
    """Stands in for a stream of the process: whole lines that somebody writes to it become asides."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note, self._begun = note, ""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Take a piece of text."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, map(str.rstrip, lines)):
            self._note(line)
        return len(text)
