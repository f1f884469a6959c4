"""`koi rpc` as a process: a test writes lines to it and reads what comes back."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import subprocess
import termios
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import koi_lang
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

# So many bytes are unread, and so often in a row the same number, when a pipe is full.
MANY, SETTLED = 20_000, 40


class Process:
    """A running `koi rpc`; its output is read in a thread, so that a test that expects too much fails in time."""

    def __init__(self, folder: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            forks.koi("rpc", *words),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.seen: list[Any] = []
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._thread: threading.Thread | None = None

    def listen(self) -> None:
        """Begin to read."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Kill the process; whoever reads has then come to the end."""
        self.process.kill()
        self.process.wait()
        if self._thread is not None:
            self._thread.join(LIMIT_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def wait_until_full(self) -> None:
        """Wait until nothing more fits into the pipe that should be read."""
        assert self.process.stdout is not None
        unread, before, same, end = array("i", [0]), -1, 0, time.monotonic() + LIMIT_S
        while same < SETTLED:
            assert time.monotonic() < end, f"{unread[0]} bytes are unread, and more come"
            time.sleep(0.005)
            fcntl.ioctl(self.process.stdout, termios.FIONREAD, unread)
            same = same + 1 if unread[0] == before and before > MANY else 0
            before = unread[0]

    def write(self, data: bytes) -> None:
        """Send bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, type: str, **fields: Any) -> None:
        """Send a command."""
        self.write(json.dumps({"type": type, **fields}).encode() + b"\n")

    def next(self) -> Any:
        """The next message; None at the end."""
        line = self._lines.get(timeout=LIMIT_S)
        if not line:
            return None
        message = json.loads(line)
        self.seen.append(message)
        return message

    def until(self, type: str) -> Any:
        """The next message, or event, of a type; None when the end comes before."""
        while (message := self.next()) is not None:
            if type in (message["type"], message.get("event", {}).get("type")):
                return message.get("event", message)
        return None

    def ask(self, type: str, **fields: Any) -> Any:
        """The response to a command."""
        self.send(type, **fields)
        return self.until("response")

    def close_input(self) -> None:
        """Say nothing any more."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """The exit code, once everything that comes has been read."""
        while self.next() is not None:
            pass
        return self.process.wait(LIMIT_S)

    def errors(self) -> str:
        """What was written to stderr, to its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextmanager
def rpc(project: Project, *words: str, listens: bool = True, **environment: str) -> Iterator[Process]:
    """A running `koi rpc`; it is ended with the block at the latest."""
    process = Process(project.folder, words, environment)
    if listens:
        process.listen()
    try:
        yield process
    finally:
        process.end()
        for stream in (process.process.stdin, process.process.stdout, process.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue


def are_gone(pids: Sequence[int]) -> bool:
    """Whether processes have ended, or do so soon: the system takes a moment for what was killed."""
    end = time.monotonic() + LIMIT_S
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(map(alive, pids))


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
