"""A server of MCP over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from koi_lang.http_server.address import Address
from koi_lang.http_server.guard import ServerNames, TokenGuard
from koi_lang.http_server.listening import serve_app
from koi_lang.mcp_server.sessions import Sessions

if TYPE_CHECKING:
    from starlette.applications import Starlette

PATH = "/mcp"
MAX_SESSIONS = 1000


async def serve_http(server: Server[Sessions], address: Address, ready: Callable[[str], None]) -> None:
    """Serve until this is cancelled.

    Args:
        ready: is given the URL when clients can connect.

    Raises:
        UsageError: the address cannot be used.
    """
    await serve_app(TokenGuard(app_of(server, address), address.token), address, lambda url: ready(url + PATH))


def app_of(server: Server[Sessions], address: Address, path: str = PATH) -> Starlette:
    """The app at a path, which checks by which name it is called; it needs its lifespan."""
    known = ServerNames.of(address)
    hosts = [host for name in sorted(known.names) for host in (name, f"{name}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[*(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")), *known.listed],
    )
    return server.streamable_http_app(streamable_http_path=path, transport_security=security, max_sessions=MAX_SESSIONS)
