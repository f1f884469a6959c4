"""A request of a program, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from koi_lang.errors import AgentError
from koi_lang.redaction.names import HEADER_VALUES, shown_headers
from koi_lang.runtime.replay.calls import Effect

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD")
TIMEOUT_S, MAX_TIMEOUT_S = 30.0, 120.0
DEFAULT_MAX_BYTES, MAX_BYTES = 1_000_000, 10_000_000
OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade"})
KNOWN = ("method", "headers", "body", "timeout", "size")
NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")


@dataclass(frozen=True, slots=True)
class CheckedRequest:
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
        """Its form for the journal."""
        shown: dict[str, Any] = {"method": self.method, "url": self.address, "headers": sorted(self.headers)}
        shown |= {"body": self.body, HEADER_VALUES: shown_headers(self.headers)}
        return Effect("http.request", shown, safe=self.method in SAFE, goes_out=True)


def check_request(address: str, options: Mapping[str, Any]) -> CheckedRequest:
    """A request that can be sent. Raises AgentError for one that cannot."""
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
    timeout_s = _number("timeout", options.get("timeout"), TIMEOUT_S, MAX_TIMEOUT_S)
    most_bytes = int(_number("size", options.get("size"), DEFAULT_MAX_BYTES, MAX_BYTES))
    return CheckedRequest(method, address, _headers(options.get("headers")), body, timeout_s, most_bytes)


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
    for name, value in given.items():
        if name.lower() in OURS:
            raise AgentError(f"the header `{name}` cannot be chosen", help="It follows from the request.")
        if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
            # Not with its value, which may be a key.
            help = "Use printable ASCII without blanks around it; a key from a file may end with a line break."
            raise AgentError(f"the header `{name}` cannot be sent as it is", help=help)
    return {name.lower(): value for name, value in given.items()}


def _number(name: str, given: Any, usual: float, most: float) -> float:
    if given is None:
        return usual
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= most:
        raise AgentError(f"`{name}` must be a number above 0 and at most {most:,.0f}, not {given!r}")
    return float(given)
