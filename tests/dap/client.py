"""A DAP client: what an editor does, in a few lines."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

Message = dict[str, Any]


class RefusedError(Exception):
    """A request was answered with `success: false`."""


class Client:
    """One debug session: requests wait for their answers, events are kept in order."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.events, self.number = process, list[Message](), 0

    def request(self, command: str, **arguments: Any) -> Any:
        """The body of the answer. Raises RefusedError."""
        number = self.send(command, **arguments)
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == number:
                if not message["success"]:
                    raise RefusedError(message["message"])
                return message.get("body")
            self._keep(message)

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request and do not wait."""
        self.number += 1
        body = json.dumps({"seq": self.number, "type": "request", "command": command, "arguments": arguments}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.number

    def write(self, data: bytes) -> None:
        """Send bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def event(self, *names: str) -> Message:
        """The next event of one of some names; those before it are dropped, but for output."""
        while True:
            for index, event in enumerate(self.events):
                if event["event"] in names:
                    del self.events[index]
                    return event
            self._keep(self._read())

    def _keep(self, message: Message) -> None:
        if message["type"] == "event":
            self.events.append(message)

    def _read(self) -> Message:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            length = int(line.partition(b":")[2])
        body = self.process.stdout.read(length)
        assert body, "the adapter has ended"
        message: Message = json.loads(body)
        return message

    # ------------------------------------------------------------ what an editor does

    def launch(
        self, breakpoints: Mapping[Path, Sequence[Any]], filters: Sequence[str] = (), **given: Any
    ) -> list[Message]:
        """Begin a session; gives what is told of the breakpoints. A breakpoint is a line or its fields."""
        self.request("initialize", adapterID="koi")
        self.request("launch", **given)
        self.event("initialized")
        told: list[Message] = []
        for path, lines in breakpoints.items():
            told += self.set_breakpoints(path, *lines)
        self.request("setExceptionBreakpoints", filters=list(filters))
        self.request("configurationDone")
        return told

    def set_breakpoints(self, path: Path, *lines: Any) -> list[Message]:
        """Have the breakpoints of a file be these."""
        wanted = [{"line": line} if isinstance(line, int) else line for line in lines]
        body = self.request("setBreakpoints", source={"path": str(path)}, breakpoints=wanted)
        found: list[Message] = body["breakpoints"]
        return found

    def stop(self) -> str:
        """Wait for the next stop, or the end: `reason line name`."""
        event = self.event("stopped", "terminated")
        if event["event"] == "terminated":
            return "terminated"
        frame = self.stack()[0]
        return f"{event['body']['reason']} {frame['line']} {frame['name']}"

    def go(self, command: str = "continue", **arguments: Any) -> str:
        """Go on, and wait for the next stop."""
        self.request(command, threadId=1, **arguments)
        return self.stop()

    def stack(self) -> list[Message]:
        """The frames, from the inside out."""
        frames: list[Message] = self.request("stackTrace", threadId=1)["stackFrames"]
        return frames

    def variables(self, frame: int = 0) -> dict[str, str]:
        """The variables of all scopes of a frame, as they are shown."""
        id = self.stack()[frame]["id"]
        scopes = self.request("scopes", frameId=id)["scopes"]
        listed = [self.request("variables", variablesReference=scope["variablesReference"]) for scope in scopes]
        return {each["name"]: each["value"] for body in listed for each in body["variables"]}

    def evaluate(self, text: str, frame: int = 0) -> str:
        """What the console answers."""
        result: str = self.request("evaluate", expression=text, frameId=self.stack()[frame]["id"])["result"]
        return result

    def output(self, category: str = "stdout") -> str:
        """What has been shown so far."""
        bodies = (event["body"] for event in self.events if event["event"] == "output")
        return "".join(body["output"] for body in bodies if body["category"] == category)


@contextmanager
def debugging(project: Project, *words: str) -> Iterator[Client]:
    """A session with `koi debug`, which is over with the block."""
    process = subprocess.Popen(
        forks.python("-m", "tests.dap.forked", "debug", *words),
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            yield Client(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=LIMIT_S)


def wait_until(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait until something holds that other processes bring about. Raises TimeoutError."""
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("it did not come about")
        time.sleep(0.02)
