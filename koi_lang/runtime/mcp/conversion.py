"""What servers answer to values of a program, and values to what a model is told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.js.errors import ErrorValue
from koi_lang.js.json_text import parse_exactly
from koi_lang.runtime.actions.registered import ActionError
from koi_lang.runtime.mcp.safe_text import plain
from koi_lang.runtime.mcp.tools import Tool
from koi_lang.runtime.model_calls.images import medium

if TYPE_CHECKING:
    from mcp.types import CallToolResult, GetPromptResult, ReadResourceResult

MAX_FAILURE_CHARS = 2000
# What JSON may begin with.
JSON = frozenset('{["-0123456789tfn \t\r\n')
PROTOCOL = ("isError", "resultType", "ttlMs", "cacheScope", "_meta")


def result_of(tool: Tool, result: CallToolResult) -> Any:
    """What a tool gave, as data: structured if it is, else its text. Raises ActionError when the tool failed."""
    texts = [item.text for item in result.content if item.type == "text"]
    if result.is_error:
        text = plain("\n".join(texts), MAX_FAILURE_CHARS) or "it does not say why"
        raise ActionError(f"`{tool.server}.{tool.name}` failed: {text}")
    if result.structured_content is not None:
        only_data = len(texts) == len(result.content)
        return _as_data(json.dumps(result.structured_content)) if only_data else _raw(result)
    if not texts or len(texts) < len(result.content):
        return _raw(result)
    return _value(texts[0]) if len(texts) == 1 else {"result": "\n".join(texts)}


def resource_of(result: ReadResourceResult) -> Any:
    """A document `{ uri, mimeType, text }`, with `blob` instead of `text` if it is none; several as `contents`."""
    contents = _raw(result)["contents"]
    return contents[0] if len(contents) == 1 else {"contents": contents}


def prompt_of(result: GetPromptResult) -> str:
    """A prompt as text; where several speak, who does is said."""
    roles = {message.role for message in result.messages}
    said = [(message.role, _content_text(_raw(message.content))) for message in result.messages]
    return "\n\n".join(text if len(roles) == 1 else f"{role}: {text}" for role, text in said)


def _content_text(content: Mapping[str, Any]) -> str:
    if content["type"] == "text":
        return str(content["text"])
    if content["type"] == "resource" and "text" in content["resource"]:
        return str(content["resource"]["text"])
    return str(medium(content) or content.get("uri") or content["type"])


def _raw(result: Any) -> Any:
    """What the library read, as JSON has it, without what only concerns the protocol."""
    data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _as_data(json.dumps({name: value for name, value in data.items() if name not in PROTOCOL}))


def _value(text: str) -> Any:
    """A text as data if it is JSON, else as it is."""
    if text[:1] not in JSON:
        return {"result": text}
    try:
        return _as_data(text)
    except ErrorValue:
        return {"result": text}


def _as_data(text: str) -> Any:
    """JSON text as data, its whole numbers exact: servers count beyond 2^53."""
    return parse_exactly(text)


def pick_fields(items: Sequence[Any], *names: str) -> list[dict[str, Any]]:
    """What a server lists, with some of the fields of each."""
    return [{name: value for name, value in _raw(item).items() if name in names} for item in items]
