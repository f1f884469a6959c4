"""Clients that do not read, or hardly send: they are cut off, and hold up nobody."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from koi_lang.http_server import listening
from koi_lang.http_server.address import Address
from koi_lang.http_server.listening import serve_app
from tests.limits import LIMIT_S
from tests.service.serving_process import TOKEN, ServiceProcess

LOUD = """
role Worker { can execute }
agent Main : Worker {
  on shout(args: Json) {
    const text = "x".repeat(100000)
    for (let n = 0; n < 150; n++) { console.log(text); await new Promise((done) => setTimeout(done, 1)) }
  }
}
"""


def connect(service: ServiceProcess, path: str, *headers: str) -> socket.socket:
    """A connection that has asked for something and takes hardly anything that comes."""
    host, _, port = service.url.rpartition("/")[2].partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(LIMIT_S)
    connection.connect((host, int(port)))
    lines = (f"GET /{path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {TOKEN}", *headers, "", "")
    connection.sendall("\r\n".join(lines).encode())
    return connection


def rest_of(connection: socket.socket, last: bytes) -> bytes:
    """All that comes until the other end has said its last: it waits ten seconds for a goodbye before it closes."""
    content = b""
    with suppress(ConnectionError, TimeoutError):
        while last not in content[-400:] and (piece := connection.recv(1 << 16)):
            content += piece
    return content


UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.mark.parametrize(("path", "headers"), [pytest.param("events", (), marks=pytest.mark.thorough), ("ws", UPGRADE)])
def test_who_does_not_read_is_cut_off(
    start_service: Callable[..., ServiceProcess], path: str, headers: tuple[str, ...]
) -> None:
    """The run goes on, others hear all of it, and what is kept for the one who does not read stays bounded."""
    service = start_service(main=LOUD)
    run = service.begin()
    with connect(service, f"api/runs/{run}/{path}", *headers) as deaf:
        service.command(run, "run_playbook", name="Main.shout", args={})
        heard = service.follow_until(run, lambda message: message.get("event", {}).get("type") == "call_ended")
        told = rest_of(deaf, b"8 MB")

    assert 150 == sum(message.get("event", {}).get("type") == "printed" for _, message in heard)
    assert len(told) < 12_000_000
    assert json.dumps("cut_off").encode() in told[-400:]
    assert b"8 MB" in told[-400:]


def test_who_hardly_sends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that send nothing, or a head that never ends, are closed; meanwhile others are answered."""
    monkeypatch.setattr(listening, "PATIENCE_S", 0.6)

    async def answer(request: object) -> PlainTextResponse:
        return PlainTextResponse("here")

    async def drip(port: int, begun: asyncio.Semaphore) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        begun.release()
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        content = await reader.read()
        writer.close()
        return content

    async def play() -> bytes:
        begun = asyncio.Semaphore(0)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        app = Starlette(routes=[Route("/", answer)])
        serving = asyncio.create_task(serve_app(app, Address("127.0.0.1", 0, None), ready.set_result))
        port = int((await ready).rpartition(":")[2])
        slow = [asyncio.create_task(drip(port, begun)) for _ in range(40)]
        for _ in slow:
            await begun.acquire()
        content = await ask(port)
        await asyncio.gather(*slow)
        serving.cancel()
        await asyncio.wait([serving])
        return content

    assert asyncio.run(play()).endswith(b"here")
