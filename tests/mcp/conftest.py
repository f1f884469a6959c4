"""Programs whose agent uses the server of these tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from koi_lang import program
from tests.playbook.playing import Played, Player, act

SERVER = Path(__file__).with_name("server.py")
LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Shelf:
    """Plays programs that use a server `files`, which notes its processes in a file."""

    play: Player
    pids: Path

    def program(self, can: str = "call_mcp", code: str = "", **options: Any) -> str:
        """A program whose `Main` may do something and uses a server, by default over stdio."""
        env = {"PIDS": str(self.pids), "SHELF": "oak", "EMPTY": ""}
        declared = options or {"command": sys.executable, "args": [str(SERVER)], "env": env}
        return (
            f"role Worker {{ can {can} }}\nmcp files = {json.dumps(declared)}\n"
            f'agent Main : Worker {{\n  uses mcp files\n  uses team All\n  on go(args) {{ playbook """Do it.""" }}\n'
            f"{code}\n}}\nteam All {{ main: Main }}\n"
        )

    def __call__(self, *answers: Any, can: str = "call_mcp", code: str = "", **options: Any) -> Played:
        """What comes of some answers, and of a `return` after them."""
        return self.play(self.program(can, code, **options), [*answers, act("return", data={})])

    def result(self, tool: str, **input: Any) -> Any:
        """What a tool of the server gives."""
        answer = {"batch": [call(tool, id="x", **input), act("return", data="${x.output}")]}
        return self(answer).result

    def processes(self) -> list[int]:
        """Every process of the server so far."""
        return [int(line) for line in self.pids.read_text("utf-8").split()] if self.pids.exists() else []


def call(tool: str, *, id: str | None = None, **input: Any) -> dict[str, Any]:
    """An action that calls a tool of the server."""
    return act("call_mcp", mcp="files", tool=tool, input=input, **({"id": id} if id else {}))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """Programs in a folder of their own; compiled ones are kept there too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
        yield Shelf(Player(tmp_path), tmp_path / "pids")
    program.unload()


@pytest.fixture
def address() -> Iterator[str]:
    """The server over HTTP, in a process that ends with the test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], env={**os.environ, "PIDS": ""})
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


class Refusal(BaseHTTPRequestHandler):
    """Answers everything with 401."""

    def do_POST(self) -> None:
        """Refuse."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(401)

    def log_message(self, format: str, *values: Any) -> None:
        """Say nothing."""


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a server that wants credentials."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("the server does not listen")
