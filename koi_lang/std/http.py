"""Addresses to answers for `std/http`: bounded in size and time, and only from hosts that may be reached."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from koi_lang.errors import AgentError, PermissionDenied
from koi_lang.runtime.outside import Effect
from koi_lang.std.outside import folder, told

if TYPE_CHECKING:
    import httpx2

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD")
TIMEOUT_S, LONGEST_S = 30.0, 120.0
MOST_BYTES, LARGEST = 1_000_000, 10_000_000
MOST_REDIRECTS = 5
OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade"})
KNOWN = ("method", "headers", "body", "timeout", "size")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has been checked.

    Attributes:
        timeout_s: how long all of it may take, redirects and the body included.
        most_bytes: how large the body of the answer may be, unpacked.
    """

    method: str
    address: str
    headers: Mapping[str, str]
    body: str | None
    timeout_s: float
    most_bytes: int

    @property
    def effect(self) -> Effect:
        """What is told of it."""
        # Of headers only the names: their values may be keys.
        shown = {"method": self.method, "url": self.address, "headers": sorted(self.headers), "body": self.body}
        return Effect("http.request", shown, safe=self.method in SAFE)


async def request(address: str, options: Any) -> dict[str, Any]:
    """Ask a server; an answer with an error status is an answer.

    Args:
        address: of `http` or `https`, without a user name.
        options: `method`, `headers`, `body` (a text), `timeout` in seconds, `size` in bytes.

    Returns:
        `status`, `ok`, `url` (after redirects), `type`, `headers` and `text`.

    Raises:
        PermissionDenied: the host is not public, and `koi.toml` does not allow it.
        AgentError: the request is none, no answer came, or one that is too large, too late, or no text.
    """
    asked = _checked(address, options if isinstance(options, dict) else {})
    return dict(await told(asked.effect, lambda: _answered(asked)))


# ---------------------------------------------------------------- what is asked


def _checked(address: str, options: Mapping[str, Any]) -> Asked:
    _require_address(address)
    for name in options:
        if name not in KNOWN:
            raise AgentError(f"a request has no option `{name}`", help=f"It may have {', '.join(KNOWN)}.")
    method = str(options.get("method") or "GET").upper()
    body = options.get("body")
    if method not in METHODS:
        raise AgentError(f"`{method}` is no method", help=f"Use one of {', '.join(METHODS)}.")
    if body is not None and (method in SAFE or not isinstance(body, str)):
        help = "Use POST, PUT or PATCH, and turn values into text with `JSON.stringify(value)`."
        raise AgentError("only a text can be sent, and not with GET or HEAD", help=help)
    timeout_s = _number("timeout", options.get("timeout"), TIMEOUT_S, LONGEST_S)
    most_bytes = int(_number("size", options.get("size"), MOST_BYTES, LARGEST))
    return Asked(method, address, _headers(options.get("headers")), body, timeout_s, most_bytes)


def _require_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_address = False
    if not is_address or not address.isprintable():
        raise AgentError(f"`{address}` is no address of the web", help="Write one such as `https://example.org/page`.")
    if parts.username is not None:
        raise AgentError("an address may not hold a user name", help="Send the header `authorization` instead.")


def _headers(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise AgentError("`headers` must be an object of texts", help='Write `{ accept: "text/html" }`.')
    for name in given:
        if name.lower() in OURS:
            raise AgentError(f"the header `{name}` cannot be chosen", help="It follows from the request.")
    return {name.lower(): value for name, value in given.items()}


def _number(name: str, given: Any, usual: float, most: float) -> float:
    if given is None:
        return usual
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= most:
        raise AgentError(f"`{name}` must be a number above 0 and at most {most:,.0f}, not {given!r}")
    return float(given)


# ---------------------------------------------------------------- what is answered


async def _answered(asked: Asked) -> dict[str, Any]:
    import httpx2

    try:
        async with asyncio.timeout(asked.timeout_s):
            return await _received(asked)
    except TimeoutError as error:
        told = f"`{asked.address}` did not answer within {asked.timeout_s:g} s"
        raise AgentError(told, help="Give it more time with `timeout`, in seconds.") from error
    except httpx2.TooManyRedirects as error:
        raise AgentError(f"`{asked.address}` leads on more than {MOST_REDIRECTS} times") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = str(error) or type(error).__name__
        raise AgentError(f"`{asked.address}` cannot be reached: {why}") from error


async def _received(asked: Asked) -> dict[str, Any]:
    import httpx2

    from koi_lang import settings
    from koi_lang.std.addresses import Allowed
    from koi_lang.std.transport import Guarded

    guarded = Guarded(Allowed.of(settings.allowed_hosts(folder())))
    headers = {"user-agent": "koi", "accept-encoding": "gzip", **asked.headers}
    async with httpx2.AsyncClient(
        transport=guarded, trust_env=False, follow_redirects=True, max_redirects=MOST_REDIRECTS, timeout=asked.timeout_s
    ) as client:
        client.event_hooks = {"request": [_require_web]}
        body = None if asked.body is None else asked.body.encode()
        async with client.stream(asked.method, asked.address, headers=headers, content=body) as answer:
            data = await _body(answer, asked)
            return _shown(answer, data, asked)


async def _require_web(request: httpx2.Request) -> None:
    """Refuse where a redirect leads away from the web."""
    if request.url.scheme not in ("http", "https"):
        raise PermissionDenied(f"`{request.url}` is no address of the web")


async def _body(answer: httpx2.Response, asked: Asked) -> bytes:
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


def _shown(answer: httpx2.Response, data: bytes, asked: Asked) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = data.decode(answer.charset_encoding or "utf-8-sig")
    except (UnicodeDecodeError, LookupError) as error:
        raise AgentError(f"`{asked.address}` answers with `{kind or 'bytes'}`, which is no text") from error
    return {
        "status": answer.status_code,
        "ok": 200 <= answer.status_code <= 299,
        "url": str(answer.url),
        "type": kind,
        "headers": dict(answer.headers),
        "text": text,
    }


def require_ok(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer whose status says that all went well. Raises AgentError for others."""
    if not answer["ok"]:
        raise AgentError(f"`{answer['url']}` answered with the status {answer['status']}")
    return answer


def require_json(text: str, address: str) -> Any:
    """The value in a text of JSON. Raises AgentError."""
    from koi_lang.runtime.values import json_text
    from koi_lang.runtime.values.failures import ErrorValue

    try:
        return json_text.parse(text)
    except ErrorValue as error:
        raise AgentError(f"`{address}` does not answer with JSON: {error.message}") from error
