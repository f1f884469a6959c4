"""Addresses to answers for `std/http`: bounded in size and time, and only from hosts that may be reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError
from koi_lang.js import json_text
from koi_lang.js.errors import ErrorValue
from koi_lang.lazy import lazy_module
from koi_lang.std.effects import perform_effect
from koi_lang.std.http_request import check_request

if TYPE_CHECKING:
    from koi_lang.std import http_client
else:
    http_client = lazy_module("koi_lang.std.http_client")


async def request(address: str, options: Any) -> dict[str, Any]:
    """Ask a server; an answer with an error status is an answer.

    Args:
        address: of `http` or `https`, without a user name.
        options: `method`, `headers`, `body` (a text), `timeout` in seconds, `size` in bytes.

    Returns:
        `status`, `ok`, `url` (after redirects), `type`, `headers` and `text`.

    Raises:
        PermissionDeniedError: the host is not public, and `koi.toml` does not allow it.
        AgentError: the request is none, no answer came, or one that is too large, too late, or no text.
    """
    asked = check_request(address, options if isinstance(options, dict) else {})
    return dict(await perform_effect(asked.effect, lambda: http_client.send_request(asked)))


def require_ok(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer whose status says that all went well. Raises AgentError for others."""
    if not answer["ok"]:
        raise AgentError(f"`{answer['url']}` answered with the status {answer['status']}")
    return answer


def require_json(text: str, address: str) -> Any:
    """The value in a text of JSON. Raises AgentError."""
    try:
        return json_text.parse(text)
    except ErrorValue as error:
        raise AgentError(f"`{address}` does not answer with JSON: {error.message}") from error
