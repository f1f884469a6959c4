"""A connection to a run of another process: its messages, and commands with their responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.rpc.framing import MAX_MESSAGE_BYTES
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.service.live.addresses import connect
from koi_lang.sessions.client_host import Message

# How long a run has to say who it is; one whose program computes does so, too.
READY_S = 5.0


class NotAttachableError(KoiError):
    """A run cannot be followed."""


class LiveClient:
    """One follower of a run.

    Attributes:
        ready: the first message.
    """

    ready: Message

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._told: asyncio.Queue[Message | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[Message]] = {}
        self._count = 0
        self._is_over = False

    async def ask(self, message: Mapping[str, Any]) -> Message:
        """The response to a command. Raises NotAttachableError when the run is gone before."""
        if self._is_over:
            raise _gone()
        self._count += 1
        id = f"follower-{self._count}"
        answer = self._asked[id] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps({**message, "id": id}).encode() + b"\n")
        try:
            response = await answer
        finally:
            del self._asked[id]
        own = {"id": message["id"]} if "id" in message else {}
        return {**{name: value for name, value in response.items() if name != "id"}, **own}

    async def follow(self, since: int, *, may_answer: bool) -> None:
        """Receive the entries behind a number, and the messages from now on."""
        await self.ask({"type": "follow", "since": since, "answers": may_answer})

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages, until the run is over or gone."""
        while (message := await self._told.get()) is not None:
            yield message

    async def greet(self) -> None:
        """Take the first message. Raises NotAttachableError."""
        try:
            async with asyncio.timeout(READY_S):
                first = await self._next()
        except TimeoutError as error:
            raise _gone() from error
        if first is None or first["type"] != "rpc_ready":
            raise NotAttachableError(f"the run takes nobody: {(first or {}).get('reason', 'it is over')}")
        self.ready = first

    async def receive(self) -> None:
        """Receive messages until the end."""
        try:
            while (message := await self._next()) is not None:
                answer = self._asked.get(message.get("id", "")) if message["type"] == "response" else None
                if answer is None:
                    self._told.put_nowait(message)
                elif not answer.done():
                    answer.set_result(message)
        finally:
            self._is_over = True
            self._told.put_nowait(None)
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(_gone())

    async def _next(self) -> Mapping[str, Any] | None:
        """The next message; None at the end, and for an invalid one."""
        try:
            line = await self._reader.readline()
            message = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None

    def close(self) -> None:
        """Be gone."""
        self._writer.close()


@asynccontextmanager
async def open_client(path: Path) -> AsyncIterator[LiveClient]:
    """A context with a connection to the run at a socket. Raises NotAttachableError, or OSError where there is none."""
    reader, writer = await asyncio.open_unix_connection(sock=connect(path), limit=2 * MAX_MESSAGE_BYTES)
    client = LiveClient(reader, writer)
    try:
        await client.greet()
        async with together() as group:
            receiving = group.create_task(client.receive())
            try:
                yield client
            finally:
                receiving.cancel()
    finally:
        client.close()


def _gone() -> NotAttachableError:
    return NotAttachableError("the run is gone, or does not answer")
