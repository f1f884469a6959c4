"""Commands of `koi` as processes that are ready at once, because they are forked from one that has imported it.

Such a process has descriptors, a folder, an environment and signals of its own. Only the start of an interpreter is
spared, and its end; both are the subject of tests of their own.
"""

from __future__ import annotations

import atexit
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests import launch
from tests.limits import LIMIT_S

CHECKOUT = Path(__file__).resolve().parents[1]
KOI = ("-m", "koi_lang")
FORKING = str(CHECKOUT / "tests" / "forking.py")
# Names the socket of the process that the workers of a suite share: each has its own one forked from it.
SHARED = "KOI_TESTS_FORKING"
# What takes long to import, and tests need beside what commands need.
IMPORTED_BY_TESTS = ("acp", "anthropic", "hypothesis", "tests.imported_tests")


class ForkServer(NamedTuple):
    """A process that forks commands, and what ends it."""

    pid: int
    end: Callable[[], object]


def koi(*words: str) -> list[str]:
    """The words that start a `koi` command which is forked."""
    return python(*KOI, *words)


def command(folder: Path, name: str = "koi") -> Path:
    """A file `koi` or `python` in a folder, for whoever looks for it on `PATH`; what it starts is forked."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {shlex.join(koi() if name == "koi" else python())} "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


def python(*words: str) -> list[str]:
    """The words that start a Python which is forked, for whoever starts processes in a way of their own."""
    return [*_python(_listening()), *words]


def _python(listening: str) -> list[str]:
    """The words that start a Python which is forked from the process that listens at a socket."""
    return [sys.executable, "-I", "-S", launch.__file__, listening]


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = "", limit_s: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """The outcome of a `koi` command that gets a text; texts are UTF-8. Raises TimeoutError after too many seconds."""
    return run_python((*KOI, *words), folder, environment, stdin, limit_s)


def run_python(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = "", limit_s: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """The outcome of a Python with some words (`-m MODULE …`, `-c TEXT`, the path of a script), otherwise as `run`."""
    (stdin_r, stdin_w), (stdout_r, stdout_w), (stderr_r, stderr_w) = os.pipe(), os.pipe(), os.pipe()
    wanted = {"folder": str(folder), "environment": dict(environment), "terminal": False}
    told = socket.socket(socket.AF_UNIX)
    launch.launch(told, _listening(), [*words], (stdin_r, stdout_w, stderr_w), **wanted)
    for descriptor in (stdin_r, stdout_w, stderr_w):
        os.close(descriptor)
    with ThreadPoolExecutor(3) as pool, told, told.makefile() as lines:
        out, err = pool.submit(_read, stdout_r), pool.submit(_read, stderr_r)
        pool.submit(_write, stdin_w, stdin)
        told.settimeout(limit_s)
        _, code = lines.read().split()
    return subprocess.CompletedProcess(words, int(code), out.result(), err.result())


class Command:
    """A `koi` command that is under way, for tests that kill it: nothing stands between it and them.

    Args:
        words: of the command, whose streams are empty and go nowhere.

    Attributes:
        pid: its number.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        about = {"folder": str(folder), "environment": dict(environment), "terminal": False}
        self._told = socket.socket(socket.AF_UNIX)
        with open(os.devnull, "r+b", buffering=0) as nowhere:
            streams = (nowhere.fileno(),) * 3
            launch.launch(self._told, _listening(), [*KOI, *words], streams, **about)
        self.pid = launch.read_number(self._told)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        is_over = self._code is not None or select.select([self._told], [], [], 0)[0]
        return self.wait() if is_over else None

    def kill(self) -> None:
        """Kill it, unless it is over."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Its exit code, once it is over. Raises TimeoutError after too many seconds."""
        if self._code is None:
            self._told.settimeout(limit_s)
            with self._told:
                self._code = launch.read_number(self._told)
        return self._code


def _read_line(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as stream:
        return stream.readline()


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as stream:
        return stream.read()


def _write(descriptor: int, text: str) -> None:
    with suppress(BrokenPipeError), open(descriptor, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)


def forking_processes() -> list[int]:
    """The processes that fork for this one; none before the first command."""
    return [server.pid for server in _started]


def share() -> None:
    """Start the process that the workers to come share. It imports nothing before the first of them needs it."""
    os.environ[SHARED] = _listening()


def python_for_workers() -> list[str]:
    """The words that start a Python for a worker of the suite: it is forked, and has imported what tests import.

    The process that forks it is forked from the one that workers share for their commands, which needs less.
    """
    path = os.path.join(os.path.dirname(os.environ[SHARED]), "workers")
    server = _forked_server(os.environ[SHARED], path, {**os.environ, "PYTHONPATH": str(CHECKOUT)}, *IMPORTED_BY_TESTS)
    _started.append(server)
    atexit.register(server.end)
    return _python(path)


# The processes that fork, from the first command on.
_started: list[ForkServer] = []


# A test may begin with two commands at once, each in a thread of its own.
_beginning = threading.Lock()


def _listening() -> str:
    """The socket of the process that forks, which ends with this one."""
    with _beginning:
        return _begin_listening()


@cache
def _begin_listening() -> str:
    environment, owner = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUTF8": "1"}, os.getpid()
    shared = environment.pop(SHARED, "")
    # A worker may end without its clean-up, so its socket lies in the folder of the process that began it.
    folder = os.path.dirname(shared) if shared else tempfile.mkdtemp(prefix="koi-tests-")
    path = os.path.join(folder, f"forking-{owner}")
    server = _forked_server(shared, path, environment) if shared else _new_server(path, environment)
    _started.append(server)

    def end() -> None:
        if os.getpid() == owner:  # what was forked from this process ends before it
            server.end()
            if not shared:
                shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return path


def _new_server(path: str, environment: Mapping[str, str]) -> ForkServer:
    """A process of its own, which imports what it needs with the first command."""
    words = [sys.executable, "-P", FORKING, path]
    process = subprocess.Popen(words, cwd=CHECKOUT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"ready\n"
    return ForkServer(process.pid, process.communicate)


def _forked_server(shared: str, path: str, environment: Mapping[str, str], *modules: str) -> ForkServer:
    """A process that is forked from the shared one, with all that it has imported; it ends with its standard input.

    Args:
        modules: what it imports beside that with its first command.
    """
    (stdin_r, stdin_w), (stdout_r, stdout_w) = os.pipe(), os.pipe()
    about = {"folder": str(CHECKOUT), "environment": dict(environment), "terminal": False, "outlives": True}
    told = socket.socket(socket.AF_UNIX)
    launch.launch(told, shared, [FORKING, path, *modules], (stdin_r, stdout_w, 2), **about)
    os.close(stdin_r)
    os.close(stdout_w)
    assert _read_line(stdout_r) == "ready\n"
    lines = told.makefile()
    pid = int(lines.readline())

    def end() -> None:
        os.close(stdin_w)
        with told, lines:
            lines.readline()

    return ForkServer(pid, end)
