"""A program that is served, and the official client connected to it over stdio or HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from koi_lang.system.certificates import certificates
from tests import forks
from tests.limits import LIMIT_S

PROGRAM = Path(__file__).with_name("served.koi")
TOKEN = "a-token-for-tests"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}

Scenario = Callable[[Client], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs are served: a folder, and a cache of compiled programs."""

    folder: Path
    cache: Path

    def command(self, *words: str) -> list[str]:
        """A `koi serve mcp` command."""
        return forks.koi("serve", "mcp", *words)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a server, and of the servers that it starts."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        own = {"KOI_CACHE_DIR": str(self.cache), "KOI_CONFIG_DIR": f"{self.folder}-config"}
        return {**kept, **own, "PYTHONPATH": str(Path(__file__).parents[2]), "KOI_SERVE_TOKEN": TOKEN}

    def koi(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The outcome of a server that gets some lines."""
        return subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=LIMIT_S,
        )

    def stdio(self, *words: str, **about: Any) -> AbstractAsyncContextManager[Client]:
        """A client with a server of its own; `about` are options of the client."""
        command, *arguments = self.command(*words)
        way = StdioServerParameters(command=command, args=arguments, env=self.environment, cwd=str(self.folder))
        return Client(stdio_client(way, sys.__stderr__), **about)

    @asynccontextmanager
    async def http(self, url: str, token: str = TOKEN, **about: Any) -> AsyncIterator[Client]:
        """A client of a server that listens, of the protocols with sessions unless `mode` says otherwise."""
        headers = {"Authorization": f"Bearer {token}"}
        about = {"mode": "legacy", **about}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=LIMIT_S, verify=certificates()) as connection,
            Client(streamable_http_client(url, http_client=connection), **about) as client,
        ):
            yield client


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that listens, and the file with what it has printed."""

    url: str
    printed: Path
    process: subprocess.Popen[str]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder for servers."""
    return Place(tmp_path_factory.mktemp("served"), tmp_path_factory.getbasetemp() / "cache")


def listening(place: Place, *words: str) -> Iterator[Listening]:
    """A server that listens, until the caller goes on."""
    printed = Path(tempfile.mkstemp(dir=place.folder)[1])
    with printed.open("w") as stdout:
        process = subprocess.Popen(
            forks.koi("serve", "mcp", *words),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place.folder,
            env=place.environment,
        )
    try:
        assert process.stderr is not None
        told = ""
        while not (found := re.search(r"serving `\w+` at (\S+)\n", told)):
            line = process.stderr.readline()
            assert line, f"the server has ended: {told}"
            told += line
        yield Listening(found[1], printed, process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=LIMIT_S)


@pytest.fixture(scope="session")
def server(place: Place) -> Iterator[Listening]:
    """The program of these tests over HTTP; each test that connects has a session of its own."""
    yield from listening(place, str(PROGRAM), "--rehearse", "--http", "127.0.0.1:0")


async def posted(server: Listening, method: str, params: Any, **headers: str) -> httpx2.Response:
    """The response to one request, sent without a client library."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx2.AsyncClient(timeout=LIMIT_S, verify=certificates()) as client:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post(server.url, json=body, headers={**AUTHORIZED, **sent})


def over_stdio(place: Place, scenario: Scenario, *words: str, **about: Any) -> Any:
    """What a scenario gives with a client over stdio."""

    async def play() -> Any:
        async with asyncio.timeout(LIMIT_S), place.stdio(*(words or (str(PROGRAM), "--rehearse")), **about) as client:
            return await scenario(client)

    return asyncio.run(play())


def over_http(place: Place, server: Listening, scenario: Scenario, **about: Any) -> Any:
    """What a scenario gives with a client over HTTP."""

    async def play() -> Any:
        async with asyncio.timeout(LIMIT_S), place.http(server.url, **about) as client:
            return await scenario(client)

    return asyncio.run(play())


@pytest.fixture(params=["stdio", "http"])
def play(request: pytest.FixtureRequest, place: Place) -> Callable[..., Any]:
    """Plays a scenario over each of the two transports; keywords are options of the client."""
    if request.param == "stdio":
        return lambda scenario, **about: over_stdio(place, scenario, **about)
    server = request.getfixturevalue("server")
    return lambda scenario, **about: over_http(place, server, scenario, **about)


def text(result: Any) -> str:
    """The only text of a result."""
    (content,) = result.content
    return str(content.text)


def written(path: Path, text: str) -> None:
    """Wait until a file holds a text."""
    end = time.monotonic() + LIMIT_S
    while not (path.exists() and path.read_text("utf-8") == text):
        assert time.monotonic() < end, f"`{path.name}` never holds {text!r}"
        time.sleep(0.005)
