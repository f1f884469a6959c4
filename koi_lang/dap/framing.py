"""Messages of the Debug Adapter Protocol on a stream: a header with the length, then JSON in UTF-8."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from koi_lang.errors import KoiError

# Bytes of one message, and of the headers before it; those of editors take some kilobytes.
MAX_BODY_BYTES = 16 << 20
MAX_HEAD_BYTES = 8 << 10
LENGTH = "content-length"


class FramingError(KoiError):
    """A client sends data that is no message of the protocol."""


def encode(message: dict[str, Any]) -> bytes:
    """A message as it goes over the stream."""
    body = json.dumps(message, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


async def read_message(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None where the stream ends, also within one. Raises FramingError."""
    try:
        head = await stream.readuntil(b"\r\n\r\n")
        body = await stream.readexactly(_length_in(head))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise FramingError("the header of a message does not end") from None
    return _decode(body)


def _length_in(head: bytes) -> int:
    """The length that a header says, in bytes. Raises FramingError."""
    lines = (line.partition(":") for line in head.decode("ascii", "replace").split("\r\n"))
    length = next((value.strip() for name, _, value in lines if name.strip().lower() == LENGTH), "")
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        raise FramingError(f"a message has no usable `Content-Length`: {length[:20]!r}")
    return int(length)


def _decode(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FramingError(f"a message is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise FramingError("a message is no JSON object")
    return message
