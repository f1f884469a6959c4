"""Programs whose agent uses the server of these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from koi_lang.program import loader
from tests import forks
from tests.playbook.playing import Played, Player, act

SERVER = Path(__file__).with_name("server.py")
RAW = Path(__file__).with_name("raw.py")


@dataclass(frozen=True, slots=True)
class Shelf:
    """Plays programs that use a server `files`, which notes its processes in a file."""

    play: Player
    pids: Path

    def program(self, can: str = "call_mcp", code: str = "", **options: Any) -> str:
        """A program whose `Main` may do something and uses a server, by default over stdio."""
        env = {"PIDS": str(self.pids), "SHELF": "oak", "EMPTY": ""}
        command, *words = forks.python(str(SERVER))
        declared = options or {"command": command, "args": words, "env": env}
        return (
            f"role Worker {{ can {can} }}\nmcp files = {json.dumps(declared)}\n"
            f'agent Main : Worker {{\n  uses mcp files\n  uses team All\n  on go(args) {{ playbook """Do it.""" }}\n'
            f"{code}\n}}\nteam All {{ main: Main }}\n"
        )

    def raw(self, *words: str, **env: str) -> dict[str, Any]:
        """The options of the server that needs no library, with its habit."""
        return {"command": sys.executable, "args": [str(RAW), *words], "env": {"PIDS": str(self.pids), **env}}

    def code(self, body: str, *words: str, can: str = "call_mcp", **services: Any) -> Played:
        """What comes of code that uses that server."""
        source = self.program(can, f"  on code(args) {{ {body} }}", **self.raw(*words))
        return self.play(source, services.pop("answers", []), call="Main.code", **services)

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
    loader.unload()


@pytest.fixture
def address() -> Iterator[str]:
    """The server over HTTP, in a process that ends with the test."""
    with serving("http") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def json_address() -> Iterator[str]:
    """The server over HTTP, which answers with JSON instead of a stream of events."""
    with serving("json") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def older_address() -> Iterator[str]:
    """The server over HTTP with a stream of events."""
    with serving("sse") as port:
        yield f"http://127.0.0.1:{port}/sse"


@contextmanager
def serving(way: str) -> Iterator[int]:
    """The port at which the server listens for a while."""
    command, env = forks.python(str(SERVER), way), {**os.environ, "PIDS": ""}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


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
