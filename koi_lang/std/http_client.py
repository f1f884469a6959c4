"""A request to a server, bounded in size and time."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

import httpx2

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.runtime.guards.transport import Guarded
from koi_lang.settings import project
from koi_lang.std.effects import project_settings, require_host
from koi_lang.std.http_request import CheckedRequest

MAX_REDIRECTS = 5


async def send_request(asked: CheckedRequest, *, follows: bool = True, allowed: Sequence[str] = ()) -> dict[str, Any]:
    """The response of a server as a value.

    Args:
        follows: whether an answer that leads elsewhere is followed there.
        allowed: hosts that may be reached beside those of `koi.toml`, although they are not public.

    Raises:
        PermissionDeniedError: the host is not public and not allowed.
        AgentError: no answer came, or one that is too large, too late, or no text.
    """
    try:
        async with asyncio.timeout(asked.timeout_s):
            return await _receive(asked, follows, allowed)
    except TimeoutError as error:
        message = f"`{asked.address}` did not answer within {asked.timeout_s:g} s"
        raise AgentError(message, help="Give it more time with `timeout`, in seconds.") from error
    except httpx2.TooManyRedirects as error:
        raise AgentError(f"`{asked.address}` leads on more than {MAX_REDIRECTS} times") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = str(error) or type(error).__name__
        raise AgentError(f"`{asked.address}` cannot be reached: {why}") from error


async def _receive(asked: CheckedRequest, follows: bool, allowed: Sequence[str]) -> dict[str, Any]:
    guarded = Guarded(Allowed.of([*project.allowed_hosts(project_settings()), *allowed]))
    headers = {"user-agent": "koi", "accept-encoding": "gzip", **asked.headers}
    async with httpx2.AsyncClient(
        transport=guarded,
        trust_env=False,
        follow_redirects=follows,
        max_redirects=MAX_REDIRECTS,
        timeout=asked.timeout_s,
    ) as client:
        client.event_hooks = {"request": [_require_web, *([_require_rules] if follows else [])]}
        body = None if asked.body is None else asked.body.encode("utf-8", "replace")
        async with client.stream(asked.method, asked.address, headers=headers, content=body) as answer:
            data = await _body(answer, asked)
            return _response_fields(answer, data, asked)


async def _require_web(request: httpx2.Request) -> None:
    """Refuse where a redirect leads away from the web."""
    if request.url.scheme not in ("http", "https"):
        raise PermissionDeniedError(f"`{request.url}` is no address of the web")


async def _require_rules(request: httpx2.Request) -> None:
    """Refuse, or ask about, hosts of which rules say so, redirects included."""
    await require_host(request.url.host, str(request.url))


async def _body(answer: httpx2.Response, asked: CheckedRequest) -> bytes:
    """The body, unpacked no further than it may be large. Raises AgentError."""
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", "x-gzip", "deflate", ""):
        raise AgentError(f"`{asked.address}` answers packed with `{packed}`, which was not asked for")
    unpack = None if packed in ("identity", "") else zlib.decompressobj(wbits=47)
    data = bytearray()
    try:
        async for chunk in answer.aiter_raw():
            data += chunk if unpack is None else unpack.decompress(chunk, asked.most_bytes + 1 - len(data))
            if len(data) > asked.most_bytes:
                help = "Ask for more with `size`, in bytes."
                raise AgentError(f"`{asked.address}` answers with more than {asked.most_bytes:,} bytes", help=help)
    except zlib.error as error:
        raise AgentError(f"`{asked.address}` answers with a body that cannot be unpacked") from error
    return bytes(data)


def _response_fields(answer: httpx2.Response, data: bytes, asked: CheckedRequest) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = data.decode(answer.charset_encoding or "utf-8").removeprefix("\ufeff")
    except (LookupError, UnicodeError) as error:  # the server names the encoding: some fail with errors of their own
        raise AgentError(f"`{asked.address}` answers with `{kind or 'bytes'}`, which is no text") from error
    return {
        "status": answer.status_code,
        "ok": 200 <= answer.status_code <= 299,
        "url": str(answer.url),
        "type": kind,
        "headers": dict(answer.headers),
        "text": text,
    }
