"""The output of a process beside its messages, with its end stored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

MAX_LINES = 20
MAX_BYTES = 16_384
# How long the last words of a process that has ended are waited for: what it started may hold its stderr open.
LAST_WORDS_S = 0.5


class StderrTail(asyncio.Protocol):
    """The output of a server beside its messages, such as on stderr; only the end is stored."""

    def __init__(self) -> None:
        self._kept = b""
        self._heard = 0
        self._closed = asyncio.Event()

    @property
    def lines(self) -> list[str]:
        """The last lines since `hear`, at most 20."""
        return self._kept[self._heard :].decode("utf-8", "replace").splitlines()[-MAX_LINES:]

    def hear(self) -> None:
        """Discard the output so far: it explains no later end of the server, which has answered since."""
        self._heard = len(self._kept)

    def data_received(self, data: bytes) -> None:
        """Keep the end of all that came."""
        kept = self._kept + data
        self._kept = kept[-MAX_BYTES:]
        self._heard = max(0, self._heard - (len(kept) - len(self._kept)))

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come."""
        self._closed.set()

    @asynccontextmanager
    async def capture(self) -> AsyncIterator[TextIO]:
        """A file whose content comes here; at the end, its last words are waited for."""
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as file:
            loop = asyncio.get_running_loop()
            pipe, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
            try:
                yield file
            finally:
                file.close()
                await self._wait_for_last_words(pipe)

    async def _wait_for_last_words(self, pipe: asyncio.BaseTransport) -> None:
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._closed.wait()
        except TimeoutError:
            return
        finally:
            pipe.close()
