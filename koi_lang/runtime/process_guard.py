"""Guards: small processes that act when the process that started them is killed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

# Waits for the end of whoever started it. A line instead of that end says that nothing is left to do.
GUARD = "read -r _ && exit; "
END_GROUP = f'{GUARD}sleep 1; kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"'
# Whatever dies with this process has a second for it.
RUN = f'{GUARD}sleep 1; exec "$@"'

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
        shell, "-c", END_GROUP, "sh", str(leader), stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True), suppress(OSError):
            await guard.communicate(b"\n")


def start_guard(words: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Have a program run should this process be killed; None where there is no shell. Raises OSError.

    Returns:
        The process that waits for this; a line to it says that nothing is left to do.
    """
    shell = shutil.which("sh")
    if shell is None:
        return None
    return subprocess.Popen(
        [shell, "-c", RUN, "sh", *words], cwd="/", stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    )
