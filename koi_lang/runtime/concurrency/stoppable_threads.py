"""Work of threads that ends where nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from koi_lang.errors import capture

T = TypeVar("T")
Stop = Callable[[], None]


class StoppedError(Exception):
    """The caller of a thread's work has stopped waiting."""


async def run_in_thread(work: Callable[[Stop], T]) -> T:
    """The result of long work in a thread; a cancelled caller waits until the thread has noticed.

    Args:
        work: calls what it is given now and then, which raises StoppedError where nobody waits any more.
    """
    ended = threading.Event()

    def stop() -> None:
        if ended.is_set():
            raise StoppedError

    future = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work, stop)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        ended.set()
        await capture(future)
        raise
