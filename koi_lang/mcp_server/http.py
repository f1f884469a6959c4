"""A server over HTTP: who may reach it, and until when it runs."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from koi_lang.errors import UsageError
from koi_lang.mcp_server.address import Address
from koi_lang.mcp_server.sessions import Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_SESSIONS = 1000
# How long connections that are still open get when the server ends.
LEAVE_S = 2


async def serve_http(server: Server[Sessions], address: Address, ready: Callable[[str], None]) -> None:
    """Serve until this is cancelled.

    Args:
        ready: is given the URL when clients can connect.

    Raises:
        UsageError: the address cannot be used.
    """
    with _listening(address) as listener:
        port = listener.getsockname()[1]
        app = server.streamable_http_app(
            streamable_http_path=PATH, transport_security=_names(address), max_sessions=MOST_SESSIONS
        )
        config = uvicorn.Config(
            _Guard(app, address.token),
            log_config=None,
            lifespan="on",
            timeout_graceful_shutdown=LEAVE_S,
            server_header=False,
        )
        ready(f"http://{_in_url(address.host)}:{port}{PATH}")
        await _serve(_Server(config), listener)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

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
            await serving
            raise


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except (OSError, OverflowError) as error:
        where = f"{_in_url(address.host)}:{address.port}"
        told = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0].lower()
        raise UsageError(f"cannot listen at {where}: {told}", help="Choose another one: --http HOST:PORT.") from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _names(address: Address) -> TransportSecuritySettings:
    """The names by which a request may call the server, and the pages it may come from: pages of these names only.

    A page of somebody else, opened in a browser on this machine, can have its own name lead here; what it sends
    carries that name and is refused.
    """
    names = {*LOOPBACK, _in_url(address.host), *map(_in_url, address.known_as)}
    hosts = [form for name in sorted(names) for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins)


class _Guard:
    """Lets requests through that show the token."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._token is None or self._shows_token(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        refused = PlainTextResponse(
            "a bearer token is needed: the one that the server has shown when it was started",
            401,
            {"WWW-Authenticate": 'Bearer realm="koi"'},
        )
        await refused(scope, receive, send)

    def _shows_token(self, headers: Headers) -> bool:
        assert self._token is not None, "nobody asks for a token"
        return any(_same(given, self._token) for given in _bearers(headers.getlist("authorization")))


def _bearers(values: Iterable[str]) -> Iterable[str]:
    for value in values:
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            yield token.strip()


def _same(given: str, token: str) -> bool:
    """Whether two texts are the same; how long it takes does not tell where they differ."""
    return hmac.compare_digest(given.encode(), token.encode())
