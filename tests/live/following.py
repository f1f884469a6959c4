"""Runs as processes, at a terminal or without one, and clients at their sockets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect

from koi_lang.service.live.addresses import connect
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

ROLE = "role W { can execute, can delegate }\n"


def question(text: str) -> str:
    """A call that asks the person."""
    return f'await callAction("prompt_user", {{ question: "{text}" }})'


def program(body: str) -> str:
    """A program of code."""
    return f"{ROLE}agent A : W {{ on go(args: Json) {{ {body} }} }}\nrun A.go({{}})\n"


@contextmanager
def at_terminal(project: Project, *words: str) -> Iterator[pexpect.spawn]:
    """A command in a pseudo-terminal."""
    python, *others = forks.koi(*words)
    environment = {**project.environment, "TERM": "xterm", "KOI_PLAIN": "1"}
    child = pexpect.spawn(python, others, cwd=project.folder, env=environment, timeout=LIMIT_S, encoding="utf-8")
    child.delaybeforesend = None
    try:
        yield child
    finally:
        child.close(force=True)


@contextmanager
def started(project: Project, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command without a terminal, and without anybody who types."""
    process = subprocess.Popen(
        forks.koi(*words),
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def sockets(project: Project) -> list[Path]:
    """The sockets of the folder."""
    return sorted((project.folder / ".koi" / "live").glob("*.sock"))


def socket_of(project: Project) -> Path:
    """The only socket of the folder, once there is one that takes connections."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        for path in sockets(project):
            try:
                connect(path).close()
            except OSError:
                continue
            return path
        time.sleep(0.005)
    raise AssertionError("no run opens a socket")


class Follower:
    """A client at the socket of a run.

    Attributes:
        ready: the first message.
        seen: all messages behind it.
    """

    def __init__(self, path: Path) -> None:
        self.socket = connect(path)
        self.socket.settimeout(LIMIT_S)
        self._lines = self.socket.makefile("rb")
        self.ready = self._next()
        self.seen: list[Mapping[str, Any]] = []

    def _next(self) -> Mapping[str, Any] | None:
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def next(self) -> Mapping[str, Any] | None:
        """The next message; None at the end."""
        message = self._next()
        if message is not None:
            self.seen.append(message)
        return message

    def send(self, type: str, **fields: Any) -> None:
        """Send a command."""
        self.socket.sendall(json.dumps({"type": type, **fields}).encode() + b"\n")

    def until(self, type: str) -> Mapping[str, Any]:
        """The next message, or event, of a type."""
        while (message := self.next()) is not None:
            if type in (message["type"], message.get("event", {}).get("type")):
                return message.get("event", message)
        raise AssertionError(f"no {type} in {self.seen}")

    def ask(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """The response to a command."""
        self.send(command, **fields)
        while (message := self.until("response"))["command"] != command:
            pass
        return message

    def follow(self, since: int = 0, **fields: Any) -> None:
        """Be told what happens."""
        self.send("follow", since=since, **fields)

    def to_end(self) -> list[Mapping[str, Any]]:
        """All messages, once the connection has been closed."""
        while self.next() is not None:
            pass
        return self.seen

    def seen_call(self, number: int) -> Mapping[str, Any]:
        """The beginning of the n-th call, once it was told."""
        while True:
            events = [message["event"] for message in self.seen if message["type"] == "event"]
            found = [event for event in events if event["type"] == "call_started"]
            if len(found) >= number:
                return found[number - 1]
            assert self.next() is not None, "the run has ended"

    def entries(self) -> list[int]:
        """The numbers of the entries that were told."""
        return [message["n"] for message in self.seen if "n" in message]

    def close(self) -> None:
        """Be gone."""
        self._lines.close()
        self.socket.close()


@contextmanager
def following(project: Project, since: int = 0, **fields: Any) -> Iterator[Follower]:
    """A client that follows the only run of a folder, and is told all that happens from now on."""
    follower = Follower(socket_of(project))
    follower.follow(since, **fields)
    follower.until("response")
    try:
        yield follower
    finally:
        follower.close()


def journal_numbers(project: Project) -> list[int]:
    """The numbers of the entries in the only journal of a folder."""
    (path,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    return [json.loads(line)["n"] for line in path.read_text("utf-8").splitlines()[1:]]


def let_go(project: Project, name: str = "go") -> None:
    """Have a program go on that waits for a pipe."""
    with open(project.folder / name, "w", encoding="utf-8"):
        pass


def wait_for(project: Project, name: str = "go") -> str:
    """Code that waits until `let_go`."""
    path = project.folder / name
    if not path.exists():
        os.mkfifo(path)
    return 'await callAction("shell", { command: "cat ' + name + '", description: "to wait" })'


__all__ = ["Follower", "socket"]
