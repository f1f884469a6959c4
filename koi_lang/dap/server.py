"""Where a client of the adapter is: at stdin and stdout, or at a TCP port of this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from koi_lang.dap.adapter import DapAdapter
from koi_lang.dap.framing import MAX_HEAD_BYTES
from koi_lang.errors import UsageError, reason
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.system.loopback import is_loopback
from koi_lang.system.readable import read_when_ready

READ_SIZE = 65536


async def serve_stdio(defaults: Mapping[str, Any]) -> None:
    """Serve the client that has started this process."""
    stream, output = asyncio.StreamReader(limit=MAX_HEAD_BYTES), sys.stdout.buffer

    def send(data: bytes) -> None:
        with suppress(BrokenPipeError):  # a client that is gone is noticed by reading
            output.write(data)
            output.flush()

    async with together() as group:
        reading = group.create_task(_feed(stream, sys.stdin.fileno()))
        await DapAdapter(send, defaults).serve(stream)
        reading.cancel()


async def _feed(stream: asyncio.StreamReader, descriptor: int) -> None:
    """Pass on standard input to its end, also from a file or from nothing."""
    while data := await read_when_ready(descriptor, READ_SIZE):
        stream.feed_data(data)
    stream.feed_eof()


async def serve_tcp(address: str, defaults: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Serve the first client that connects to an address of this machine.

    Args:
        address: `HOST:PORT`; the port 0 is one that is free.
        tell: is told the address, once somebody can connect.

    Raises:
        UsageError: the address is none of this machine, or cannot be listened at.
    """
    host, port = _address(address)
    arrived: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
        asyncio.get_running_loop().create_future()
    )

    def accept(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if arrived.done():
            writer.close()
        else:
            arrived.set_result((stream, writer))

    try:
        server = await asyncio.start_server(accept, host, port, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"`{address}` cannot be listened at: {reason(error)}") from error
    async with server:
        tell("{}:{}".format(*server.sockets[0].getsockname()[:2]))
        stream, writer = await arrived
    await DapAdapter(writer.write, defaults).serve(stream)
    writer.close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not is_loopback(host) or not port.isdecimal() or int(port) > 65535:
        help = "Write `--listen 127.0.0.1:4711`; whoever connects can have the program do anything."
        raise UsageError(f"`{text}` is no address and port of this machine", help=help)
    return host, int(port)
