"""The end of a process group whose starter is killed, and so cannot end it."""

from __future__ import annotations

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

# Waits for the end of whoever started the group, then ends its group. A line instead of that end says that nothing is
# left to do.
GUARD = 'read -r _ && exit; sleep 1; kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"'

# Carries out the command that follows once it has read a line; with an end instead of that it is not carried out.
HOLD = 'read -r _ && exec "$@" < /dev/null'


def hold_command(words: Sequence[str]) -> list[str] | None:
    """A command that begins when a line is written to it, so that it can be guarded before; None without a shell."""
    shell = shutil.which("sh")
    return None if shell is None else [shell, "-c", HOLD, "sh", *words]


@asynccontextmanager
async def guard_group(leader: int) -> AsyncIterator[None]:
    """Have a process group ended should this process not live to do it; where there is no shell, nobody does."""
    shell = shutil.which("sh")
    if shell is None:
        yield
        return
    guard = await asyncio.create_subprocess_exec(
        shell, "-c", GUARD, "sh", str(leader), stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True), suppress(OSError):
            await guard.communicate(b"\n")
