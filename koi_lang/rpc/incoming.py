"""Input of a client, read by a thread: it is received even while a program blocks the event loop."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from time import monotonic

from koi_lang.rpc.framing import LineSplitter, message_in
from koi_lang.sessions.errors import SessionError

READ_SIZE = 1 << 16
# Bytes that may wait for being taken up.
MAX_WAITING_BYTES = 1 << 25
# How long the loop has for its next turn before it counts as standing still, and how often that is looked at.
PATIENCE_S, TICK_S = 0.5, 0.1
Line = bytes | None
# Stands for the end of the input among what cannot wait until the program comes to an end.
END = "end"


class Incoming:
    """The lines of a client, as an async iterator, None for those that are too long; inside of `with` they are read.

    Args:
        descriptor: of a pipe, socket, terminal or file.
        overdue: is called by the thread, again and again, while something urgent waits and the loop stands still, with
            all that waits; the end of the input is `END`.
        urgency_of: a word for what a line asks for that cannot wait; None where it can.
    """

    def __init__(
        self,
        descriptor: int,
        overdue: Callable[[Sequence[str]], None],
        urgency_of: Callable[[Line], str | None],
    ) -> None:
        self._descriptor = descriptor
        self._overdue = overdue
        self._urgency_of = urgency_of
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[tuple[Line, bool]] = asyncio.Queue()
        self._urgent: list[str] = []
        # Each is written by one side only.
        self._delivered = self._taken = 0
        self._asked_s = self._answered_s = 0.0
        self._thread = threading.Thread(target=self._read, daemon=True, name="read the client")

    def __enter__(self) -> Incoming:
        self._ended, self._end = os.pipe()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)  # which the thread notices
        self._thread.join()
        os.close(self._ended)

    async def __aiter__(self) -> AsyncIterator[Line]:
        while True:
            line, is_end = await self._lines.get()
            if is_end:
                return
            self._taken += len(line or b"")
            yield line
            if self._urgency_of(line) is not None:
                del self._urgent[0]

    def _put_lines(self, lines: list[Line], is_end: bool) -> None:
        for line in lines:
            self._lines.put_nowait((line, False))
        if is_end:
            self._lines.put_nowait((None, True))

    def _answer(self) -> None:
        self._answered_s = monotonic()

    # ------------------------------------------------------------ in the thread

    def _read(self) -> None:
        lines, is_open = LineSplitter(), True
        with suppress(RuntimeError):  # the loop was closed
            while True:
                has_room = self._delivered - self._taken < MAX_WAITING_BYTES
                watched = [self._ended, *([self._descriptor] if is_open and has_room else [])]
                ready, _, _ = select.select(watched, [], [], TICK_S if self._urgent or not has_room else None)
                if self._ended in ready:
                    return
                self._look_after_loop()
                if self._descriptor in ready:
                    piece = self._piece()
                    is_open = bool(piece)
                    self._deliver([*(lines.feed(piece) if piece else lines.end())], is_end=not piece)

    def _piece(self) -> bytes:
        """The available input; empty at the end."""
        with suppress(OSError):  # a terminal or socket that is gone
            return os.read(self._descriptor, READ_SIZE)
        return b""

    def _deliver(self, lines: list[Line], *, is_end: bool) -> None:
        self._delivered += sum(len(line or b"") for line in lines)
        self._urgent += [what for line in lines if (what := self._urgency_of(line)) is not None]
        self._urgent += [END] if is_end else []
        self._loop.call_soon_threadsafe(self._put_lines, lines, is_end)

    def _look_after_loop(self) -> None:
        """While something urgent waits, ask the loop for a sign again and again; tell when there is none."""
        if not self._urgent:
            return
        if self._answered_s >= self._asked_s:
            self._asked_s = monotonic()
            self._loop.call_soon_threadsafe(self._answer)
        elif monotonic() - self._asked_s > PATIENCE_S:
            self._overdue(tuple(self._urgent))


def urgency_of(line: Line) -> str | None:
    """The command in a line that cannot wait, `abort` or `quit`."""
    if line is None or not (b"abort" in line or b"quit" in line):
        return None
    try:
        type = message_in(line).get("type")
    except SessionError:
        return None
    return "abort" if type == "abort" else "quit" if type == "quit" else None
