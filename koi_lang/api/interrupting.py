"""Ctrl-C while `koi_lang.run` carries out a program."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from koi_lang.runtime.concurrency.cancellation import CancelScope

T = TypeVar("T")


class Interrupt:
    """The handler of SIGINT: the first one ends the work in order, also where it computes; the next one at once."""

    def __init__(self) -> None:
        self._scope = CancelScope()
        self._is_asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Cancel the work at the first signal; raise KeyboardInterrupt at the next one."""
        if self._is_asked:
            raise KeyboardInterrupt
        self._is_asked = True
        self._scope.cancel()

    async def around(self, work: Coroutine[Any, Any, T]) -> tuple[T] | None:
        """What some work gives; None when it was ended."""
        async with self._scope:
            return (await work,)
        return None


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """What some work gives in an event loop of its own, as of `asyncio.run`.

    Raises:
        KeyboardInterrupt: SIGINT has ended it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return asyncio.run(work)
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    try:
        outcome = asyncio.run(interrupt.around(work))
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if outcome is None:
        raise KeyboardInterrupt
    return outcome[0]
