"""A server for an app, which listens at an address and closes connections that send no request in time."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from koi_lang.errors import UsageError
from koi_lang.http_server.address import Address
from koi_lang.system.capacity import file_limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# How long connections that are still open get when the server ends.
LEAVE_S = 2
# How long a client has for the head of a request, and for the rest of one that is refused.
PATIENCE_S = 20.0
# What a client has to send of a body in a second, while somebody reads it.
MIN_BODY_BYTES_PER_S = 1000
# Connections at a time; each takes a file of the process, of which half are for sessions.
MAX_CONNECTIONS = 1000
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 20\r\n\r\ntoo many connections"
)
# By the package `websockets`, which uvicorn loads by this name.
SOCKETS = "websockets-sansio"
LOG = logging.getLogger("uvicorn.error")


class PatientProtocol(H11Protocol):
    """HTTP of a connection that is closed when a request, or the body of one, does not come for a while.

    Nobody needs to be known to open connections; without this, some hundred of them would be all that there are. Where
    there are too many, the one that has been waited for longest makes room.
    """

    _given_up: asyncio.TimerHandle | None = None
    _since = 0.0
    _received = 0

    def connection_made(self, transport: Any) -> None:
        """Begin with a connection."""
        super().connection_made(transport)
        self._wait_for_request()
        if len(self.connections) > max_connections():
            waiting = [each for each in self.connections if isinstance(each, PatientProtocol) and each.is_waited_for]
            oldest = min(waiting, key=lambda each: each._since)
            if oldest is self:
                transport.write(BUSY)
            oldest.transport.close()
            self.connections.discard(oldest)  # it is gone a moment later

    @property
    def is_waited_for(self) -> bool:
        """Whether the client is to send something before the server can answer."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        """Process received data; a whole head begins a request, of which a body may follow."""
        before = self.cycle
        self._received += len(data)
        super().data_received(data)
        if self.cycle is not before and self._given_up is not None:
            self._given_up.cancel()
            if self.cycle.more_body:
                self._wait(self._look_at_body, self.cycle, self._received)

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with a connection."""
        super().connection_lost(exc)
        if self._given_up is not None:
            self._given_up.cancel()

    def _wait_for_request(self) -> None:
        self._since = self.loop.time()
        self._wait(self._give_up, self.cycle)

    def _wait(self, then: Callable[..., None], *given: object) -> None:
        if self._given_up is not None:
            self._given_up.cancel()
        due_s = self.loop.time() + PATIENCE_S

        def judge() -> None:
            if self.loop.time() - due_s > PATIENCE_S / 10:  # where the loop is late, not all that came has been read
                self._wait(then, *given)
            else:
                then(*given)

        self._given_up = self.loop.call_at(due_s, judge)

    def _give_up(self, cycle: object) -> None:
        """Close the connection, unless a request has begun or a WebSocket has taken it over."""
        if self.cycle is cycle and self.transport.get_protocol() is self:
            self.transport.close()

    def _look_at_body(self, cycle: object, before: int) -> None:
        """Close the connection where hardly anything of a body has come, unless nobody reads it now."""
        if self.cycle is not cycle or not self.cycle.more_body:
            return
        if self.flow.read_paused or self._received - before >= MIN_BODY_BYTES_PER_S * PATIENCE_S:
            self._wait(self._look_at_body, cycle, self._received)
        else:
            self.transport.close()


def max_connections() -> int:
    """How many connections there may be at a time: half as many as the process may have open files."""
    limits = file_limits()
    return MAX_CONNECTIONS if limits is None else min(MAX_CONNECTIONS, limits[0] // 2)


async def serve_app(app: ASGIApp, address: Address, ready: Callable[[str], None], **config: Any) -> None:
    """Serve until this is cancelled.

    Args:
        ready: is given the URL of the server, without a path, when clients can connect.
        config: further settings of uvicorn.

    Raises:
        UsageError: the address cannot be used.
    """
    with _listening(address) as listener:
        port = listener.getsockname()[1]
        own = {"lifespan": "on", "timeout_graceful_shutdown": LEAVE_S, "server_header": False, "ws": SOCKETS}
        server = _Server(uvicorn.Config(app, log_config=None, http=PatientProtocol, **{**own, **config}))
        ready(f"http://{in_url(address.host)}:{port}")
        LOG.addFilter(_is_no_refusal)
        await _serve(server, listener)


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield


async def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until this is cancelled; then open connections get some time, and clients that wait an answer."""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve([listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            # Streams that are open last until they are cancelled, of which the library logs a traceback each.
            LOG.addFilter(_drop)
            try:
                await serving
            finally:
                LOG.removeFilter(_drop)
            raise


def _drop(record: logging.LogRecord) -> bool:
    return False


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Whether a record is not the error that the library logs after each WebSocket refused by an answer of HTTP."""
    return record.msg != "ASGI callable returned without completing handshake."


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family)
    except (OSError, OverflowError) as error:
        where = f"{in_url(address.host)}:{address.port}"
        cause = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0].lower()
        raise UsageError(f"cannot listen at {where}: {cause}", help="Choose another one: --http HOST:PORT.") from error
    # Its connections inherit it. The event loop sets it only where a socket names its protocol, which this one does
    # not: the body of each answer would wait 40 ms for the client to confirm the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listener


def in_url(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
