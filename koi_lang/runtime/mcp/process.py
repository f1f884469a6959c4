"""A server as a process: the streams of its messages, and the end of it and of everything that it has started.

The library has such a transport. It copies an answer as often as it has pieces (80 MB take a minute), takes answers of
any size, and leaves alive what a server that ends in time has started.
"""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

import anyio
from anyio.abc import ObjectSendStream
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from koi_lang.runtime.process_guard import guard_group
from koi_lang.system.process_groups import ask_group_to_end, end_group

# How long a server may take to end by itself, and then by request.
LEAVE_S = 2.0
# How long the last messages of a process that has ended are waited for, where somebody else holds its stdout open.
LAST_MESSAGES_S = 0.5
# Of the output beside messages that is stored.
MAX_LINES = 20
MAX_BYTES = 16_384
# How long the last words of a process that has ended are waited for: what it started may hold its stderr open.
LAST_WORDS_S = 0.5
PIECE = 1 << 18
# The number of a request, as it stands at the beginning or the end of an answer.
ID = re.compile(rb'"id"\s*:\s*(\d+)')
WHERE_IDS_STAND = 200

Incoming = ObjectSendStream[SessionMessage | Exception]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command line of a server.

    Attributes:
        words: the program and its arguments.
        environment: all variables.
        most_bytes: of one message; an answer that is larger is an error.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str | None
    most_bytes: int


@asynccontextmanager
async def process_streams(
    command: ServerCommand, stderr: TextIO, ended: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    """The streams of a process that is started; leaving ends it, and everything in its process group.

    The group ends, too, when this process is killed.

    Args:
        stderr: where the process writes what is no message.
        ended: is called when it says no more.

    Raises:
        OSError: the process cannot be started.
    """
    async with _run_process(command, stderr) as running, _messages(running, command.most_bytes, ended) as streams:
        yield streams


@asynccontextmanager
async def _run_process(command: ServerCommand, stderr: TextIO) -> AsyncIterator[_Running]:
    running = await _start_process(command, stderr)
    try:
        async with guard_group(running.leader):
            try:
                yield running
            finally:
                await _end(running)
    finally:
        end_group(running.leader)
        running.transport.close()


class _Protocol(SubprocessStreamProtocol):
    """The streams of a process; they report its end even while its children hold them open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=PIECE, loop=loop)
        self.has_ended = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.has_ended.set()


@dataclass(frozen=True, slots=True)
class _Running:
    """A process that leads a group of its own."""

    leader: int
    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    has_ended: asyncio.Event


async def _start_process(command: ServerCommand, stderr: TextIO) -> _Running:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _Protocol(loop),
        *command.words,
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        env=command.environment,
        cwd=command.folder,
        start_new_session=True,
    )
    process = Process(transport, protocol, loop)
    assert process.stdin is not None
    assert process.stdout is not None
    return _Running(process.pid, transport, process.stdin, process.stdout, protocol.has_ended)


# ---------------------------------------------------------------- messages


@asynccontextmanager
async def _messages(running: _Running, most_bytes: int, ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
    async def receive() -> None:
        await _receive(running.stdout, incoming, most_bytes)
        ended()

    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with incoming, reading, writing, outgoing, anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(_close_behind, running)
        group.start_soon(_send, running.stdin, outgoing, incoming)
        yield reading, writing
        group.cancel_scope.cancel()


async def _receive(stdout: asyncio.StreamReader, incoming: Incoming, most_bytes: int) -> None:
    """Hand on each line of a process as a message, and each that is none as an error."""
    async with incoming:
        line, is_cut = bytearray(), False
        while piece := await stdout.read(PIECE):
            *ends, rest = piece.split(b"\n")
            for end in ends:
                line += end
                is_cut = is_cut or len(line) > most_bytes
                await incoming.send(_too_large(line, most_bytes) if is_cut else _message(bytes(line)))
                line, is_cut = bytearray(), False
            line += rest
            if len(line) > most_bytes:  # the beginning and the end may say whose answer it is
                del line[WHERE_IDS_STAND:-WHERE_IDS_STAND]
                is_cut = True


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _too_large(ends: bytearray, most_bytes: int) -> SessionMessage | Exception:
    """The failure of the request that was answered with too much, if it can be told."""
    message = f"the answer is larger than {most_bytes:,} bytes"
    found = ID.search(ends, 0, WHERE_IDS_STAND) or ID.search(ends, max(0, len(ends) - WHERE_IDS_STAND))
    if found is None:
        return ValueError(message)
    error = ErrorData(code=INTERNAL_ERROR, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


async def _send(stdin: asyncio.StreamWriter, outgoing: ReadStream[SessionMessage], incoming: Incoming) -> None:
    """Write messages, one a line; where nobody reads them any more, no answer will come either."""
    try:
        async for message in outgoing:
            assert not isinstance(message, Exception)
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()
    except OSError:
        await incoming.aclose()


# ---------------------------------------------------------------- the end


async def _close_behind(running: _Running) -> None:
    """Stop reading from a process that has ended, even while its children hold its stdout open."""
    await running.has_ended.wait()
    end_group(running.leader)
    await asyncio.sleep(LAST_MESSAGES_S)
    running.stdout.feed_eof()


async def _end(running: _Running) -> None:
    """End a process in the way of the protocol: it is left alone, asked to end, killed; and then its group."""
    running.stdin.close()
    with anyio.CancelScope(shield=True):
        for end in (None, ask_group_to_end, end_group):
            if end is not None:
                end(running.leader)
            with suppress(TimeoutError):
                await asyncio.wait_for(running.has_ended.wait(), LEAVE_S)
                return


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
