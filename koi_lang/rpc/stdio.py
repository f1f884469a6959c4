"""A session over stdin and stdout, which belong to the protocol alone while it lasts."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from koi_lang.errors import KoiError
from koi_lang.rpc.dispatcher import Dispatcher, refusal
from koi_lang.rpc.framing import LineSplitter, line_of, message_in
from koi_lang.rpc.incoming import Incoming, urgency_of
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.journal.entries import Redact
from koi_lang.sessions.client_host import ANSWER_S, Send
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.session import GRACE_S
from koi_lang.system.readable import read_when_ready

READ_SIZE = 1 << 16
# Bytes that a client may leave unread.
MAX_UNREAD_BYTES = 1 << 26
# How often a client is looked after.
PAUSE_S = 0.25


class ClientGoneError(Exception):
    """The client has closed its end."""


class UnreadOutputError(KoiError):
    """The client lives and does not read."""


async def serve_stdio(
    ready: Prepared, redact: Redact, earlier: Continuation = NEW_RUN, *, answer_s: float = ANSWER_S
) -> None:
    """Serve the client at the other end until it quits or is gone. Raises KoiError.

    Args:
        earlier: opens the run of a session that goes on.
    """

    async def serve(incoming: int, reply: Send) -> None:
        dispatcher = Dispatcher(ready, reply, answer_s=answer_s)
        reply(dispatcher.ready())

        def hurry(urgent: Sequence[str]) -> None:
            dispatcher.session.interrupt(0 if "abort" in urgent else GRACE_S)

        # At the end of the input what is under way has some time.
        with Incoming(incoming, hurry, urgency_of) as lines:
            await _answer_lines(dispatcher, lines, earlier, reply)

    await serve_client("koi rpc", redact, serve)


async def serve_client(command: str, redact: Redact, serve: Callable[[int, Send], Awaitable[None]]) -> None:
    """Give standard input and output to a protocol, until `serve` returns or nobody reads any more. Raises KoiError.

    Args:
        command: that is used, for the message where the system lacks what it needs.
        serve: takes the descriptor of what comes in, and what sends a message; being cancelled ends it.
    """
    if not hasattr(select, "poll"):
        help = "Run it in WSL, or run the program from Python with `koi_lang.open`."
        raise KoiError(f"this system has no pipes that `{command}` could watch", help=help)
    with _own_streams() as (incoming, outgoing), suppress(ClientGoneError):
        outbox = Outbox(outgoing)
        async with together() as group:
            writing, watching = group.create_task(outbox.write()), group.create_task(outbox.watch())
            await serve(incoming, lambda message: outbox.add(line_of(message, redact)))
            outbox.end()
            await writing
            watching.cancel()


async def _answer_lines(dispatcher: Dispatcher, lines: Incoming, earlier: Continuation, reply: Send) -> None:
    async with dispatcher.session.open(earlier) as session, together() as group:
        async for line in lines:
            try:
                message = message_in(line)
            except SessionError as error:
                reply(refusal(error))
                continue
            if dispatcher.takes_time(message):
                group.create_task(dispatcher.handle(message, reply))
                await asyncio.sleep(0)  # it takes its place before the next message
                continue
            response = await dispatcher.handle(message, reply)
            if message.get("type") == "quit" and response["success"]:
                return
        await session.finish(GRACE_S)


# ---------------------------------------------------------------- writing


class Outbox:
    """Lines on their way to a descriptor, in order; a slow reader holds up nobody but itself."""

    def __init__(self, descriptor: int, most: int = MAX_UNREAD_BYTES) -> None:
        self._descriptor, self._most = descriptor, most
        self._waiting = bytearray()
        self._news = asyncio.Event()
        self._ended = False

    def add(self, line: bytes) -> None:
        """Have a line written soon."""
        self._waiting += line
        self._news.set()

    def end(self) -> None:
        """Have `write` return when everything is written."""
        self._ended = True
        self._news.set()

    async def write(self) -> None:
        """Write added messages until the end. Raises ClientGoneError, or UnreadOutputError when too much is waiting."""
        while not self._ended or self._waiting:
            if len(self._waiting) > self._most:
                message = f"the client has left {len(self._waiting) >> 20} MB unread, so the session was ended"
                raise UnreadOutputError(message, help="A client must read all the time, also while it writes.")
            if self._waiting and _takes_more(self._descriptor):
                self._write_piece()
                await asyncio.sleep(0)  # whoever reads all the time must not keep the loop from hearing `abort`
            else:
                await self._wait_for_change()

    def _write_piece(self) -> None:
        """Write as much as never blocks where there is room for anything."""
        try:
            written = os.write(self._descriptor, self._waiting[: select.PIPE_BUF])
        except OSError as error:
            raise ClientGoneError from error
        del self._waiting[:written]

    async def _wait_for_change(self) -> None:
        """Wait until there is more to write, or room in a full pipe, socket or terminal."""
        loop = asyncio.get_running_loop()
        if self._waiting:
            loop.add_writer(self._descriptor, self._news.set)
        try:
            await self._news.wait()
        finally:
            loop.remove_writer(self._descriptor)
            self._news.clear()

    async def watch(self) -> None:
        """Wait until nobody reads any more. Raises ClientGoneError."""
        while not _is_gone(self._descriptor):  # noqa: ASYNC110  (the loop has no event for that)
            await asyncio.sleep(PAUSE_S)
        raise ClientGoneError


def _takes_more(descriptor: int) -> bool:
    """Whether writing does not wait: there is room, or nobody reads any more."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


def _is_gone(descriptor: int) -> bool:
    """Whether the reader of a pipe has closed it; of files nobody knows."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


# ---------------------------------------------------------------- reading


@contextmanager
def _own_streams() -> Iterator[tuple[int, int]]:
    """Descriptors of the client's streams.

    For everybody else, also for child processes, standard input is empty and standard output goes where errors go.
    """
    incoming = os.dup(0)
    outgoing = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield incoming, outgoing
    finally:
        for own, standard in ((incoming, 0), (outgoing, 1)):
            os.dup2(own, standard)
            os.close(own)


async def lines_from(descriptor: int) -> AsyncIterator[bytes | None]:
    """The lines that come in, None for those that are too long; waiting for one can be cancelled."""
    lines = LineSplitter()
    while piece := await _read(descriptor):
        for line in lines.feed(piece):
            yield line
    for line in lines.end():
        yield line


async def _read(descriptor: int) -> bytes:
    """The next available input; empty at the end."""
    try:
        return await read_when_ready(descriptor, READ_SIZE)
    except ConnectionResetError:
        return b""
