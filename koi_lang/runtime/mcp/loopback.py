"""The address on this machine to which a browser is led when somebody has signed in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

HOST, PATH = "127.0.0.1", "/callback"
MOST_BYTES = 16_384
DONE = "You are signed in. This page can be closed."
FAILED = "Signing in did not succeed; the program says why. This page can be closed."


class Loopback:
    """Waits for one redirect; requests for anything else, or with another state, are turned away.

    Attributes:
        url: where the browser is to be led.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.state = ""
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def wait(self, limit_s: float) -> Mapping[str, str]:
        """The fields of the redirect: `code`, or `error`. Raises TimeoutError."""
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(self._answer)

    def take(self, address: str) -> bool:
        """Whether an address is the redirect that is waited for."""
        parts = urlsplit(address)
        fields = dict(parse_qsl(parts.query))
        if parts.path != PATH or not self.state or fields.get("state") != self.state:
            return False
        if not self._answer.done():
            self._answer.set_result(fields)
        return True

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(5):
                target = (await reader.readuntil(b"\r\n")).decode("ascii", "replace").split(" ")
                is_ours = len(target) == 3 and target[0] == "GET" and self.take(target[1])
                text = (FAILED if "error=" in target[1] else DONE) if is_ours else "There is nothing here."
                status = "200 OK" if is_ours else "404 Not Found"
                head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close"
                writer.write(f"HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
                await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def loopback(port: int) -> AsyncIterator[Loopback]:
    """An address at a port, or, if that is taken or 0, at another one."""
    holder: list[Loopback] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await holder[0].answer(reader, writer)

    try:
        server = await asyncio.start_server(answer, HOST, port, limit=MOST_BYTES)
    except OSError:
        server = await asyncio.start_server(answer, HOST, 0, limit=MOST_BYTES)
    holder.append(Loopback(f"http://{HOST}:{server.sockets[0].getsockname()[1]}{PATH}"))
    try:
        yield holder[0]
    finally:
        server.close()
        await server.wait_closed()
