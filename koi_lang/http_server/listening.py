"""An app to a server that listens at an address until it is cancelled."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from koi_lang.errors import UsageError
from koi_lang.http_server.address import Address
from koi_lang.http_server.patience import PatientProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# How long connections that are still open get when the server ends.
LEAVE_S = 2
# By the package `websockets`, which uvicorn loads by this name.
SOCKETS = "websockets-sansio"


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
        await _serve(server, listener)


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
        where = f"{in_url(address.host)}:{address.port}"
        told = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0].lower()
        raise UsageError(f"cannot listen at {where}: {told}", help="Choose another one: --http HOST:PORT.") from error


def in_url(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
