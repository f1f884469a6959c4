"""One service for a folder: two would wake the same sessions, and each would keep accounts of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from koi_lang.errors import SettingsError, UsageError, reason
from koi_lang.system.file_locks import try_lock
from koi_lang.system.open_folders import STATE_FOLDER, make_state_folder

NAME = "service.lock"
# A command that a killed service had just started holds the lock until it is executed.
TRIES, PAUSE_S = 20, 0.1


@asynccontextmanager
async def sole_service(folder: Path) -> AsyncIterator[None]:
    """A context in which no other service works in a folder. Raises UsageError where one does, and SettingsError."""
    path = folder / STATE_FOLDER / NAME
    try:
        make_state_folder(path.parent)
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"`{path}` cannot be used: {reason(error)}") from error
    try:
        await _lock(held, folder)
        yield
    finally:
        os.close(held)


async def _lock(held: int, folder: Path) -> None:
    for _ in range(TRIES):
        if try_lock(held):
            return
        await asyncio.sleep(PAUSE_S)
    help = "End it, or name another folder with --record-dir."
    raise UsageError(f"another service works in `{folder}`", help=help)
