"""One process that follows a run: lines that wait for it, in order, and how much of them it may leave unread."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from koi_lang.rpc.framing import LineSplitter
from koi_lang.service.feed import MAX_UNREAD_BYTES, Numbered, view_all

READ_SIZE = 1 << 16
# Bytes that are made ready to be written.
PIECE = 1 << 16
# Commands that wait to be carried out; more are not read before.
MAX_COMMANDS = 64


class LiveConnection:
    """A client at a socket. One thread reads and writes it, others may add messages.

    Args:
        wake: has the thread look at it.

    Attributes:
        view: all that is told, since the person's own processes connect here.
        may_answer: whether it may answer questions; one that only looks keeps none open.
        follows: whether it is told what happens.
        commands: how many of it are being carried out.
        is_leaving: whether it says nothing any more.
        is_cut_off: whether it has left too much unread.
        is_over: whether it is gone, or is to be told nothing any more but what is ready.
    """

    def __init__(self, connection: socket.socket, wake: Callable[[], None]) -> None:
        connection.setblocking(False)
        self.socket, self._wake = connection, wake
        self.lines, self.view = LineSplitter(), view_all
        self.may_answer = self.follows = self.is_cut_off = False
        self.is_leaving = self.is_over = False
        self.commands = 0
        self._lock = threading.Lock()
        self._waiting: deque[Numbered] = deque()
        self._held: list[Numbered] | None = None
        self._size = self._last = 0
        self._past: Iterator[tuple[int, bytes]] | None = None
        self._ready = bytearray()

    # ------------------------------------------------------------ any thread

    def add(self, item: Numbered) -> None:
        """Have it told something, without a line break."""
        with self._lock:
            if self._held is None:
                self._put(item)
            else:
                self._held.append(item)
        self._wake()

    def hold(self) -> None:
        """Hold messages back until it gets a reply."""
        with self._lock:
            self._held = []

    def reply(self, line: bytes) -> None:
        """Have it told something before all that was kept."""
        with self._lock:
            held, self._held = self._held or (), None
            self._put((None, line))
            for item in held:
                self._put(item)
        self._wake()

    def _put(self, item: Numbered) -> None:
        if self.is_over or self.is_cut_off:
            return
        self._waiting.append(item)
        self._size += len(item[1])
        if self._size > MAX_UNREAD_BYTES:
            self.is_cut_off = True
            self._waiting.clear()

    # ------------------------------------------------------------ the thread of the socket

    def begin(self, line: bytes, since: int, earlier: Iterator[tuple[int, bytes]]) -> None:
        """Send one line, then the journal entries behind a number, then the waiting messages."""
        self._fill()
        self._ready += line + b"\n"
        self._last, self._past = since, earlier

    def end(self, line: bytes) -> None:
        """Tell it one thing more, and no other."""
        with self._lock:
            self._waiting.clear()
        self._past, self.is_over = None, True
        self._ready += line + b"\n"

    @property
    def has_more(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._ready or self._waiting or self._past is not None)

    def read(self) -> bytes | None:
        """The received bytes; empty at the end, None while there are none."""
        try:
            return self.socket.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def write(self) -> bool:
        """Write as much as it takes; gives whether it is still there."""
        try:
            while self._fill():
                del self._ready[: self.socket.send(memoryview(self._ready)[:PIECE].tobytes())]
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return True

    def _fill(self) -> bool:
        """Make lines ready, the past first; gives whether there are any."""
        while len(self._ready) < PIECE and (item := self._next()) is not None:
            self._ready += item + b"\n"
        return bool(self._ready)

    def _next(self) -> bytes | None:
        if self._past is not None:
            entry = next(self._past, None)
            if entry is not None:
                self._last = entry[0]
                return entry[1]
            self._past = None
        with self._lock:
            while self._waiting:
                number, line = self._waiting.popleft()
                self._size -= len(line)
                if number is None or number > self._last:
                    self._last = number or self._last
                    return line
        return None

    def close(self) -> None:
        """Be gone."""
        self.is_over = True
        with suppress(OSError):
            self.socket.close()
