"""The result of a tool, from the result or the error of a handler."""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp import types

from koi_lang.js.json_text import stringify_exactly

BLOCKS: dict[str, type[types.ContentBlock]] = {
    "text": types.TextContent,
    "image": types.ImageContent,
    "audio": types.AudioContent,
    "resource": types.EmbeddedResource,
    "resource_link": types.ResourceLink,
}
MEDIA = BLOCKS.keys() - {"text"}
# The fields of a whole result, as servers give it, and as a program passes it on.
RESULT = {"content", "structuredContent"}


def result_of(value: Any) -> types.CallToolResult:
    """A text as it is, media as such, everything else as JSON; objects also as structured content.

    Media are `{ type: "image", mimeType, data }`, likewise of `audio`, `{ type: "resource", resource: { uri, text } }`,
    `{ type: "resource_link", uri, name }`, lists of these and texts, and `{ content: [ … ] }`. Nothing has no content.

    Raises:
        TypeErrorValue: the value contains itself.
    """
    if isinstance(value, str):
        return types.CallToolResult(content=[_text(value)])
    written = stringify_exactly(value)
    if not isinstance(written, str):
        return types.CallToolResult(content=[])
    plain = json.loads(written)
    blocks = blocks_of(plain)
    if blocks is not None:
        structured = plain.get("structuredContent") if isinstance(plain, dict) else None
        return types.CallToolResult(content=blocks, structured_content=structured)
    structured = plain if isinstance(plain, dict) else None
    return types.CallToolResult(content=[_text(written)], structured_content=structured)


def typed_result_of(value: Any, field: str | None) -> types.CallToolResult:
    """A result of a declared type: structured content, and the same as JSON for clients that read texts.

    Args:
        field: of the structured content that holds a result which is no object.

    Raises:
        TypeErrorValue: the value contains itself.
    """
    plain = plain_of(value)
    written = value if isinstance(value, str) else json.dumps(plain, ensure_ascii=False)
    structured = plain if field is None else {field: plain}
    return types.CallToolResult(content=[_text(written)], structured_content=structured)


def failure_of(message: str) -> types.CallToolResult:
    """An error, in the words of the terminal."""
    return types.CallToolResult(content=[_text(message)], is_error=True)


def plain_of(value: Any) -> Any:
    """A value as JSON; null for values beyond JSON. Raises TypeErrorValue."""
    written = stringify_exactly(value)
    return json.loads(written) if isinstance(written, str) else None


def blocks_of(plain: Any) -> list[types.ContentBlock] | None:
    """JSON with the kind of its content, as content blocks; None for other JSON."""
    if isinstance(plain, dict) and isinstance(plain.get("content"), list) and plain.keys() <= RESULT:
        items = plain["content"]
        return _all(items) if items and all(isinstance(item, dict) for item in items) else None
    items = plain if isinstance(plain, list) else [plain]
    if not any(_kind(item) in MEDIA for item in items):
        return None
    return _all(items)


def _all(items: list[Any]) -> list[types.ContentBlock] | None:
    blocks = [_text(item) if isinstance(item, str) else _block(item) for item in items]
    whole = [block for block in blocks if block is not None]
    return whole if len(whole) == len(blocks) else None


def _block(item: Any) -> types.ContentBlock | None:
    """A content block; None for an imitation, or for unreadable data."""
    if _kind(item) not in BLOCKS:
        return None
    try:
        block = BLOCKS[_kind(item)].model_validate(item)
        if isinstance(block, types.ImageContent | types.AudioContent):
            base64.b64decode(block.data, validate=True)
    except ValueError:
        return None
    return block


def _kind(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else ""


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
