"""What a handler gave, or what went wrong, to the result of a tool."""

from __future__ import annotations

import json
from typing import Any

from mcp import types

from koi_lang.runtime.values.json_text import stringify


def result_of(value: Any) -> types.CallToolResult:
    """A text as it is, everything else as JSON, objects also as structured content; nothing has no content.

    Raises:
        TypeErrorValue: the value contains itself.
    """
    if isinstance(value, str):
        return types.CallToolResult(content=[_text(value)])
    written = stringify(value)
    if not isinstance(written, str):
        return types.CallToolResult(content=[])
    structured = json.loads(written) if written.startswith("{") else None
    return types.CallToolResult(content=[_text(written)], structured_content=structured)


def failure_of(message: str) -> types.CallToolResult:
    """An error, in the words of the terminal."""
    return types.CallToolResult(content=[_text(message)], is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
