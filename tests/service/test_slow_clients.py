"""Clients that do not read, or hardly send: they are cut off, and hold up nobody."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
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


async def answer(request: Request) -> PlainTextResponse:
    """Read a request to its end and answer it."""
    await request.body()
    return PlainTextResponse("here")


async def wait_for_event(request: Request) -> PlainTextResponse:
    """Answer a request when everybody else has gone."""
    request.app.state.begun.release()
    await request.app.state.over.wait()
    return PlainTextResponse("over")


def with_server(scenario: Callable[[int, Starlette], Awaitable[Any]]) -> Any:
    """What a scenario gives with a server, which is told by its port."""

    async def play() -> Any:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        routes = [Route("/", answer, methods=["GET", "POST"]), Route("/wait", wait_for_event)]
        app = Starlette(routes=routes, exception_handlers={ClientDisconnect: lambda request, error: Response()})
        app.state.over, app.state.begun = asyncio.Event(), asyncio.Semaphore(0)
        serving = asyncio.create_task(serve_app(app, Address("127.0.0.1", 0, None), ready.set_result))
        try:
            async with asyncio.timeout(LIMIT_S):
                return await scenario(int((await ready).rpartition(":")[2]), app)
        finally:
            serving.cancel()
            await asyncio.wait([serving])

    return asyncio.run(play())


async def drip(port: int, head: bytes, begun: asyncio.Semaphore) -> None:
    """Send a byte now and then, until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    begun.release()
    with suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)
    writer.close()


async def ask(port: int, path: str = "", body: bytes = b"", wait_s: float = 0) -> bytes:
    """The answer to a request, whose body takes a while."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{'POST' if body else 'GET'} /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    for start in range(0, len(body), 1000):
        writer.write(body[start : start + 1000])
        await asyncio.sleep(wait_s)
    content = await reader.read()
    writer.close()
    return content


HEADS = {
    "nothing": b"",
    "a head": b"GET / HTTP/1.1\r\nX-Slow: ",
    "a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n",
    "chunks": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
    "a refused body": b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_who_hardly_sends_is_left(monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    """Connections that do not come to the end of a head or a body are closed; meanwhile others are answered."""
    monkeypatch.setattr(listening, "PATIENCE_S", 0.6)

    async def scenario(port: int, app: Starlette) -> bytes:
        begun = asyncio.Semaphore(0)
        slow = [asyncio.create_task(drip(port, head, begun)) for _ in range(20)]
        for _ in slow:
            await begun.acquire()
        content = await ask(port)
        await asyncio.gather(*slow)
        return content

    assert with_server(scenario).endswith(b"here")


def test_a_body_that_comes_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is something of it."""
    monkeypatch.setattr(listening, "PATIENCE_S", 0.3)

    assert with_server(lambda port, app: ask(port, body=b"x" * 10_000, wait_s=0.1)).endswith(b"here")


def test_a_late_loop_cuts_off_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came while the server could not read counts."""
    monkeypatch.setattr(listening, "PATIENCE_S", 0.3)

    async def scenario(port: int, app: Starlette) -> bytes:
        asking = asyncio.create_task(ask(port, body=b"x" * 3000, wait_s=0.1))
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.4)
        return await asking

    assert with_server(scenario).endswith(b"here")


def test_connections_that_are_waited_for_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many strangers open, others are answered, and nobody who is being answered is cut off."""
    monkeypatch.setattr(listening, "MAX_CONNECTIONS", 10)

    async def scenario(port: int, app: Starlette) -> list[bytes]:
        begun = asyncio.Semaphore(0)
        slow = [asyncio.create_task(drip(port, HEADS["a body"], begun)) for _ in range(30)]
        for _ in slow:
            await begun.acquire()
        waiting = [asyncio.create_task(ask(port, "wait")) for _ in range(9)]
        quick = await ask(port)
        await asyncio.gather(*slow)
        app.state.over.set()
        return [quick, *await asyncio.gather(*waiting)]

    quick, *others = with_server(scenario)
    assert quick.endswith(b"here")
    assert all(each.endswith(b"over") for each in others)


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all are being answered, one more is not, and the others go on."""
    monkeypatch.setattr(listening, "MAX_CONNECTIONS", 2)

    async def scenario(port: int, app: Starlette) -> list[bytes]:
        first = asyncio.create_task(ask(port, "wait"))
        await app.state.begun.acquire()
        second = asyncio.create_task(ask(port, "wait"))
        await app.state.begun.acquire()
        refused = b""
        with suppress(ConnectionError):  # it may be closed before the answer has been read
            refused = await ask(port)
        app.state.over.set()
        return [refused, await first, await second]

    refused, *others = with_server(scenario)
    assert b"here" not in refused
    assert all(each.endswith(b"over") for each in others)


def test_a_client_that_goes_leaves_no_trace(start_service: Callable[..., ServiceProcess]) -> None:
    """Nothing is written about a body that does not come to its end."""
    service = start_service(main=LOUD)
    host, _, port = service.url.rpartition("/")[2].partition(":")
    for path in ("api/login", "api/runs", "hooks/x"):
        with socket.create_connection((host, int(port))) as connection:
            lines = (
                f"POST /{path} HTTP/1.1",
                f"Host: {host}",
                f"Authorization: Bearer {TOKEN}",
                "Content-Length: 99",
                "",
                "{",
            )
            connection.sendall("\r\n".join(lines).encode())
    service.get("api/status")
    assert service.process is not None
    service.process.terminate()
    _, told = service.process.communicate(timeout=LIMIT_S)

    assert "Traceback" not in told


def test_the_body_of_an_answer_does_not_wait_for_its_head_to_be_confirmed() -> None:
    """Connections send at once: otherwise clients that confirm late, as most do, get each answer 40 ms later."""
    with (
        listening._listening(Address("127.0.0.1", 0, None)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as connection,
    ):
        assert client.fileno() != connection.fileno()
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
