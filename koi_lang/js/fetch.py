"""The global `fetch`: an address and options to a response."""

from __future__ import annotations

import asyncio
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.errors import root_reason
from koi_lang.js import json_text
from koi_lang.js.calling import apply
from koi_lang.js.conversions import text
from koi_lang.js.environment import current_environment
from koi_lang.js.errors import ErrorValue, TypeErrorValue, thrown
from koi_lang.js.iteration import IteratorValue, iterate
from koi_lang.js.own_properties import is_record, own_entries
from koi_lang.js.undefined import Value, nullish, undefined
from koi_lang.lazy import lazy_module
from koi_lang.redaction.names import HEADER_VALUES, shown_headers
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    import httpx2

    from koi_lang.js import abort_signals, byte_arrays
    from koi_lang.js.abort_signals import AbortSignalValue
    from koi_lang.js.byte_arrays import ByteArrayValue
else:
    httpx2 = lazy_module("httpx2")
    abort_signals = lazy_module("koi_lang.js.abort_signals")
    byte_arrays = lazy_module("koi_lang.js.byte_arrays")

TIMEOUT_S = 30.0
# The mark of a request that a signal has ended, in what is recorded of it.
ABORTED = "aborted"


class HeadersValue:
    """The headers of a response; names are matched without regard to case."""

    __slots__ = ("_pairs",)
    __koi_members__: ClassVar[dict[str, str]] = {
        "get": "get", "has": "has", "forEach": "each", "keys": "keys", "values": "values", "entries": "entries",
    }  # fmt: skip

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self._pairs = {name.lower(): pairs[name] for name in sorted(pairs, key=str.lower)}

    def __iter__(self) -> Any:
        return ([name, value] for name, value in self._pairs.items())

    def __repr__(self) -> str:
        return f"Headers {self._pairs}"

    def get(self, name: Value) -> Value:
        """The value of a header, several ones joined by commas; null when there is none."""
        return self._pairs.get(text(name).lower())

    def has(self, name: Value) -> bool:
        """Whether there is such a header."""
        return text(name).lower() in self._pairs

    def each(self, callback: Value) -> Value:
        """Call with (value, name) for every header."""
        for name, value in self._pairs.items():
            apply(callback, value, name, self)
        return undefined

    def keys(self) -> IteratorValue:
        """The names, in lower case and sorted."""
        return IteratorValue("Headers Iterator", self._pairs)

    def values(self) -> IteratorValue:
        """The values, in the order of the names."""
        return IteratorValue("Headers Iterator", self._pairs.values())

    def entries(self) -> IteratorValue:
        """Pairs of name and value."""
        return IteratorValue("Headers Iterator", self)


class Response:
    """What a server answered; the body has been read."""

    __slots__ = ("_body", "headers", "ok", "redirected", "status", "status_text", "url")
    __koi_members__: ClassVar[dict[str, str]] = {
        "ok": "ok", "status": "status", "statusText": "status_text", "url": "url", "redirected": "redirected",
        "headers": "headers", "text": "text", "json": "json", "bytes": "bytes", "arrayBuffer": "bytes",
    }  # fmt: skip

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.status: int = answer["status"]
        self.ok = 200 <= self.status <= 299
        self.status_text: str = answer["reason"]
        self.url: str = answer["url"]
        self.redirected: bool = answer["redirected"]
        self.headers = HeadersValue(answer["headers"])
        self._body = answer["text"].encode() if "text" in answer else a2b_base64(answer["base64"])

    def __repr__(self) -> str:
        return f"Response {{ status: {self.status}, statusText: '{self.status_text}', url: '{self.url}' }}"

    async def text(self) -> str:
        """The body as text; it is read as UTF-8."""
        return self._body.decode("utf-8-sig", "replace")

    async def bytes(self) -> ByteArrayValue:
        """The body as it came."""
        return byte_arrays.byte_array(self._body)

    async def json(self) -> Value:
        """The value that the body is the JSON of. Raises SyntaxErrorValue."""
        return json_text.parse(await self.text())


async def fetch(url: Value, options: Value = undefined) -> Response:
    """Ask a server and read its answer, following redirects unless `redirect` says otherwise; at most 30 s.

    Args:
        url: an absolute address of `http` or `https`.
        options: an object with `method`, `headers`, `body` (text or bytes), `redirect` and `signal`.

    Raises:
        TypeErrorValue: there was no answer; its cause says why. An answer with an error status is an answer.
        Exception: the reason of the signal, when that was aborted before there was an answer.
    """
    wanted: Mapping[str, Value] = options if is_record(options) else {}
    signal = _signal(wanted.get("signal", undefined))
    request, mode = _request(text(url), wanted), text(wanted.get("redirect", "follow"))
    if signal is not None:
        signal.throw_if_aborted()
    # Only what a server may be asked twice for is not written down beforehand.
    shown = {
        "method": request["method"],
        "url": request["url"],
        "body": _body(request["content"] or b""),
        HEADER_VALUES: shown_headers(request["headers"]),
    }
    is_safe = request["method"] in ("GET", "HEAD", "OPTIONS")
    answer = await current_environment().perform(
        "fetch", shown, lambda: _send_unless(signal, request, mode), safe=is_safe, unseen=request["headers"]
    )
    if signal is not None and ABORTED in answer:
        await signal.wait()
        raise thrown(signal.reason)
    return Response(answer)


def _signal(given: Value) -> AbortSignalValue | None:
    """The signal among the options. Raises TypeErrorValue for what is none."""
    if nullish(given):
        return None
    if not isinstance(given, abort_signals.AbortSignalValue):
        raise TypeErrorValue("Failed to construct 'Request': member signal is not of type AbortSignal.")
    return given


async def _send_unless(signal: AbortSignalValue | None, request: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """What a server answers; the mark of an abort that came first and ended the request. Raises TypeErrorValue."""
    if signal is None:
        return await _send_request(request, mode)
    if signal.is_aborted:
        return {ABORTED: True}
    limit = asyncio.timeout(None)
    forget = signal.follow(lambda: limit.reschedule(0))
    try:
        async with limit:
            return await _send_request(request, mode)
    except TimeoutError:
        if not limit.expired():
            raise
        return {ABORTED: True}
    finally:
        forget()


async def _send_request(request: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """What a server answers, as data. Raises TypeErrorValue."""
    try:
        follows = mode == "follow"
        async with httpx2.AsyncClient(follow_redirects=follows, timeout=TIMEOUT_S, verify=certificates()) as client:
            answer = await client.request(**request)
    # A header that is no ASCII is a ValueError; what the address makes of sockets comes in a group.
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, ExceptionGroup) as error:
        raise TypeErrorValue("fetch failed", ErrorValue(f"{request['url']}: {root_reason(error)}")) from error
    if mode == "error" and answer.is_redirect:
        raise TypeErrorValue("fetch failed", TypeErrorValue("unexpected redirect"))
    return {
        "status": answer.status_code,
        "reason": answer.reason_phrase,
        "url": str(answer.url),
        "redirected": bool(answer.history),
        "headers": dict(answer.headers),
        **_body(answer.content),
    }


def _body(content: bytes) -> dict[str, str]:
    """The bytes of a body as JSON can hold them."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b2a_base64(content, newline=False).decode()}


def _request(url: str, options: Mapping[str, Value]) -> dict[str, Any]:
    """The arguments of a request; a text goes out as UTF-8 with a content type that says so."""
    headers = _headers(options.get("headers", undefined))
    body = options.get("body", undefined)
    if hasattr(type(body), "put_item"):
        body = bytes(body)
    if not nullish(body) and not isinstance(body, bytes):
        body = text(body).encode()
        headers.setdefault("content-type", "text/plain;charset=UTF-8")
    method = text(options.get("method", "GET")).upper()
    if not nullish(body) and method in ("GET", "HEAD"):
        raise TypeErrorValue("Request with GET/HEAD method cannot have body.")
    return {"method": method, "url": url, "headers": headers, "content": None if nullish(body) else body}


def _headers(given: Value) -> dict[str, str]:
    if nullish(given):
        return {}
    pairs = own_entries(given) if is_record(given) else iterate(given)
    return {text(name).lower(): text(value) for name, value in pairs}
