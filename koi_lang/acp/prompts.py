"""The content blocks of a prompt, as the message that a handler is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from koi_lang.acp.connection import INVALID_PARAMS, JsonObject, RpcError
from koi_lang.llm.messages import Message
from koi_lang.sessions.calls import message_with_images

FENCE = re.compile(r"^ *(`{3,})", re.MULTILINE)


def message_of_blocks(blocks: Any, folder: Path) -> Message:
    """The text and the images of a prompt.

    Files are named relative to the folder of the session, and the content that comes with one is quoted below its name.

    Raises:
        RpcError: a block cannot be read, or is of a kind that is not taken.
        SessionError: an image cannot be read.
    """
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise RpcError(INVALID_PARAMS, "`prompt` is no list of content blocks")
    text = "".join(text for block in blocks for text in _texts(block, folder))
    images = [image for block in blocks if (image := _image(block)) is not None]
    return message_with_images(text, images)


def code_block(text: str) -> str:
    """A text as a block of Markdown that nothing in it ends."""
    fence = max(FENCE.findall(text), key=len, default="``") + "`"
    return "\n".join([fence, text.strip("\n"), fence])


def _texts(block: JsonObject, folder: Path) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "resource_link", "uri": str(uri)}:
            yield f"`{_name_of(uri, folder)}`"
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            yield f"\n\n`{_name_of(uri, folder)}`:\n{code_block(text)}\n\n"
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str()}}:
            yield f"`{_name_of(uri, folder)}`"
        case {"type": "image", "data": str()}:
            return
        case _:
            help = "Send `text`, `image`, `resource` and `resource_link` with their fields."
            raise RpcError(INVALID_PARAMS, f"a content block `{block.get('type')}` cannot be read", help=help)


def _image(block: JsonObject) -> JsonObject | None:
    """The image in a block; None where there is none."""
    match block:
        case {"type": "image", "data": data}:
            return {"data": data}
        case {"type": "resource", "resource": {"mimeType": str(type), "blob": data}} if type.startswith("image/"):
            return {"data": data}
    return None


def _name_of(uri: str, folder: Path) -> str:
    """The path of a file, relative to the folder where it is in there; other addresses stay as they are."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path, lines = Path(unquote(parts.path)), f"#{parts.fragment}" if parts.fragment else ""
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix() + lines
