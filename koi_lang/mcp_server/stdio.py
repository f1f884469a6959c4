"""A server over stdin and stdout, which belong to the protocol alone while it runs."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from anyio import BrokenResourceError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from koi_lang.mcp_server.sessions import Sessions

if TYPE_CHECKING:
    from anyio import AsyncFile

MAX_BYTES = 1 << 26


async def serve_stdio(server: Server[Sessions]) -> None:
    """Serve the client at the other end until it leaves."""
    with _own_stdin() as descriptor:
        # Only the iteration over lines is asked of the file; the library would read it in a thread, which nothing
        # can interrupt.
        incoming = cast("AsyncFile[str]", _lines(descriptor))
        try:
            async with stdio_server(stdin=incoming) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        except* BrokenResourceError:
            pass  # a client has left while calls were under way: nobody reads their answers


@contextmanager
def _own_stdin() -> Iterator[int]:
    """A descriptor for the messages of clients; standard input is empty for all other code and child processes."""
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield own
    finally:
        os.dup2(own, 0)
        os.close(own)


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor as they come; waiting for one can be cancelled."""
    file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    if _never_waits(descriptor):
        with file:
            for line in file:
                yield line.decode("utf-8", "replace")
        return
    reader = asyncio.StreamReader(limit=MAX_BYTES)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        async for line in reader:
            yield line.decode("utf-8", "replace")
    finally:
        pipe.close()


def _never_waits(descriptor: int) -> bool:
    """Whether reading a descriptor ends at once: files and the null device cannot be watched, and need not be."""
    about = os.fstat(descriptor)
    return stat.S_ISREG(about.st_mode) or about.st_rdev == os.stat(os.devnull).st_rdev
