"""Access to a server: requests by its own name, from no foreign page, with a token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from koi_lang.http_server.address import Address
from koi_lang.http_server.listening import in_url

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class ServerNames:
    """The names by which a request may call a server, and the pages it may come from: pages of these names only.

    A page of somebody else, opened in a browser on this machine, can have its own name lead here; what it sends
    carries that name and is refused.

    Attributes:
        names: of the server, without a port.
        listed: origins of pages of others that may call the server, too.
        public: the origin of its pages behind a proxy; no other port or scheme of that name is one of the server.
    """

    names: frozenset[str]
    listed: tuple[str, ...] = ()
    public: str = ""

    @classmethod
    def of(cls, address: Address) -> ServerNames:
        """Those of a server at an address."""
        names = {*LOOPBACK, in_url(address.host), *map(in_url, address.known_as)}
        if address.public_origin:
            names.add(_name_and_port(address.public_origin.partition("://")[2])[0])
        return cls(frozenset(names), address.origins, address.public_origin)

    def is_own_host(self, host: str | None) -> bool:
        """Whether a request calls the server by one of its names."""
        return host is not None and _name_and_port(host)[0] in self.names

    def is_own_origin(self, origin: str | None) -> bool:
        """Whether a request comes from a page of the server, or from no page."""
        if origin is None or not origin.startswith(("http://", "https://")):
            return origin is None
        return _name_and_port(origin.partition("://")[2])[0] in self.names

    def is_listed(self, origin: str | None, host: str | None) -> bool:
        """Whether a request comes from a page of others that may call the server.

        Args:
            host: the value of `Host`; a page at that address is one of the server, even where it is listed.
        """
        return origin in self.listed and origin.partition("://")[2] != host and origin != self.public

    def is_other_port(self, origin: str | None, host: str | None) -> bool:
        """Whether a request comes from a page of another server on the machine that it calls; cookies know no ports.

        Args:
            host: the value of `Host`; a proxy may leave the port out.
        """
        if origin is None or host is None or origin == self.public:
            return False
        if host == self.public.partition("://")[2]:
            return True  # the proxy is called, whose pages have one origin
        scheme, _, page = origin.partition("://")
        (name, port), (called, own) = map(_name_and_port, (page, host))
        if name != called and not {name, called} <= {*LOOPBACK}:
            return False
        if not own:
            if called == _name_and_port(self.public.partition("://")[2])[0]:
                return True
            return called in LOOPBACK and port not in ("", DEFAULT_PORTS.get(scheme))
        return own != (port or DEFAULT_PORTS.get(scheme))


def _name_and_port(authority: str) -> tuple[str, str]:
    name, _, port = authority.rpartition(":")
    return (name, port) if port.isdecimal() else (authority, "")


class TokenGuard:
    """Lets requests through that show the token."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
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
        return any(is_same(given, self._token) for given in bearers(headers.getlist("authorization")))


def bearers(values: Iterable[str]) -> Iterator[str]:
    """The tokens in values of `Authorization`."""
    for value in values:
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            yield token.strip()


def is_same(given: str, token: str) -> bool:
    """Whether two texts are the same; how long it takes does not tell where they differ."""
    return hmac.compare_digest(given.encode(), token.encode())
