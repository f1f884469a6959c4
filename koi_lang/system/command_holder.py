"""The holder of commands: a process that starts several of them where it runs, such as in one sandbox.

It is carried out as a program of its own, `python -c TEXT SOCKET`, with the standard library alone. Requests are frames
on the socket, four bytes of length and then JSON: `{"id", "words", "cwd"}` with the files for its output starts a
command, `{"id", "signal"}` sends a signal to everything that it has started, `{"mounts": true}` asks what is mounted.
Reports are lines of JSON on its standard output: `{"id", "code"}` when a command has ended, `{"id", "gone": true}` when
nothing is left of what it has started. The end of the socket ends all of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

HEADER_BYTES = 4
SET_CHILD_SUBREAPER = 36
MAX_ROUNDS = 200
PAUSE_S = 0.002
CANNOT_START = 126


def report(**fields: Any) -> None:
    """Write a report in one piece, since several processes do."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(fields).encode() + b"\n")


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose parent has ended; only Linux can do that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """The processes below one, outer ones first; none where the system does not list them."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append(int(name))
    below = [root]
    for each in below:
        below += children.get(each, ())
    return below[1:]


def send_signal(number: int, to: list[int]) -> None:
    """Send a signal to processes; those that have ended are left out."""
    for each in to:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)


def kill_below(root: int, *, spared: tuple[int, ...] = ()) -> None:
    """End all processes below one, those included that they start meanwhile.

    Args:
        spared: processes that are not ended, nor what is below them.
    """
    for _ in range(MAX_ROUNDS):
        stopped: set[int] = set()
        while new := [each for each in list_victims(root, spared) if each not in stopped]:
            send_signal(signal.SIGSTOP, new)
            stopped.update(new)
        if not stopped:
            return
        send_signal(signal.SIGKILL, [*stopped])
        time.sleep(PAUSE_S)


def list_victims(root: int, spared: tuple[int, ...]) -> list[int]:
    """The processes below one that are not spared."""
    below = descendants(root)  # looked up first: what is spared may start more meanwhile
    kept = {each for keeper in spared for each in (keeper, *descendants(keeper))}
    return [each for each in below if each not in kept]


def carry_out(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Become a command."""
    try:
        os.chdir(request["cwd"])
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), files[0], files[-1])):
            os.dup2(file, number)
        for each in (signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(each, signal.SIG_DFL)
        os.execvp(request["words"][0], request["words"])
    except OSError as error:
        os.write(2, f"{request['words'][0]}: {error.strerror}\n".encode())
    os._exit(CANNOT_START)


def keep(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Start a command and wait until nothing is left of what it has started, as the parent of all of it."""
    with contextlib.suppress(OSError):
        os.setsid()
        signal.set_wakeup_fd(-1)
        adopt_orphans()
        child = os.fork()
        if child == 0:
            carry_out(request, files)
        for file in files:
            os.close(file)
        while True:
            try:
                ended, status = os.waitpid(-1, 0)
            except ChildProcessError:
                break
            if ended == child:
                report(id=request["id"], code=os.waitstatus_to_exitcode(status))
    os._exit(0)


class Holder:
    """The commands that have been started here, by the process that keeps each."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._keepers: dict[int, int] = {}

    def serve(self) -> None:
        """Answer requests until they end, then end all commands."""
        wakes, woken = os.pipe()
        for each in (wakes, woken):
            os.set_blocking(each, False)
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        report(ready=True)
        while True:
            readable = select.select([self._requests.fileno(), wakes], [], [])[0]
            if wakes in readable:
                os.read(wakes, 4096)
                self.note_ends()
            if self._requests.fileno() in readable and not self.answer():
                break
        kill_below(os.getpid())

    def answer(self) -> bool:
        """Carry out one request; returns whether there was one."""
        files: list[int] = []
        frame, size = b"", HEADER_BYTES
        while len(frame) < size:
            piece, received = socket.recv_fds(self._requests, size - len(frame), 2)[:2]
            files += received
            if not piece:
                return False
            frame += piece
            if size == HEADER_BYTES == len(frame):
                size += int.from_bytes(frame, "big")
        self._carry_out(json.loads(frame[HEADER_BYTES:]), files)
        return True

    def _carry_out(self, request: dict[str, Any], files: list[int]) -> None:
        for file in files:
            os.set_inheritable(file, False)
        if "words" in request:
            self.start(request, files)
        elif "mounts" in request:
            report(mounts=mount_points())
        for keeper in [keeper for keeper, id in self._keepers.items() if id == request.get("id")]:
            if request.get("signal") == signal.SIGKILL:
                kill_below(keeper)
            elif "signal" in request:
                send_signal(request["signal"], descendants(keeper))
        for file in files:
            os.close(file)

    def start(self, request: dict[str, Any], files: list[int]) -> None:
        """Start a command."""
        try:
            keeper = os.fork()
        except OSError as error:
            os.write(files[-1], f"no more processes can be started: {error.strerror}\n".encode())
            report(id=request["id"], code=CANNOT_START)
            report(id=request["id"], gone=True)
            return
        if keeper == 0:
            keep(request, files)
        self._keepers[keeper] = request["id"]

    def note_ends(self) -> None:
        """Report the commands of which nothing is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if ended == 0:
                    return
                id = self._keepers.pop(ended, None)
                if id is not None and os.WIFSIGNALED(status):
                    # A command has killed its keeper: what it has started belongs to nobody now.
                    kill_below(os.getpid(), spared=tuple(self._keepers))
                if id is not None:
                    report(id=id, gone=True)


def mount_points() -> list[str]:
    """Where something is mounted for this process."""
    with open("/proc/self/mountinfo", "rb") as file:
        points = [line.split(b" ", 5)[4] for line in file]
    return [os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes((int(code[1], 8),)), each)) for each in points]


def main() -> None:
    """Serve the socket that the arguments name."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    adopt_orphans()
    Holder(requests).serve()


if __name__ == "__main__":
    main()
