"""A transport of HTTP that guards hosts: each is looked up once and reached at that very number, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from koi_lang.runtime.guards.hosts import Allowed, reachable
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    from ssl import SSLContext

PORTS = {"http": 80, "https": 443}


class Guarded(httpx2.AsyncBaseTransport):
    """A transport that every request goes through, redirected ones included; proxies are not used.

    Args:
        verify: what certificates are checked with, in place of those that this machine trusts.
    """

    def __init__(self, allowed: Allowed, verify: SSLContext | None = None) -> None:
        self._allowed = allowed
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, verify=verify or certificates(trust_env=False))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the host at a number that was found to be public or allowed. Raises KoiError."""
        host = request.url.host
        port = request.url.port or PORTS[request.url.scheme]
        numbers = await reachable(host, port, self._allowed)
        for number in numbers[:-1]:
            try:
                return await self._inner.handle_async_request(_at(number, request))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_at(numbers[-1], request))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def _at(number: str, request: httpx2.Request) -> httpx2.Request:
    """The request to an address; headers and certificate check keep the name."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=number),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
