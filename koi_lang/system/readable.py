"""Waiting for something to read, which can be cancelled."""

from __future__ import annotations

import asyncio
import os
import stat


async def read_when_ready(descriptor: int, most_bytes: int) -> bytes:
    """The next available input; empty at the end. Raises OSError as `os.read` does."""
    if not _must_wait(descriptor):
        return os.read(descriptor, most_bytes)
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except NotImplementedError:  # the loop of Windows waits for sockets only
        return await asyncio.to_thread(os.read, descriptor, most_bytes)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, most_bytes)


def _must_wait(descriptor: int) -> bool:
    """Whether reading may block: of pipes, sockets and terminals, never of files."""
    status = os.fstat(descriptor)
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode) or os.isatty(descriptor)
