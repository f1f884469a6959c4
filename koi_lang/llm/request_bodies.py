"""Bodies of requests to the bytes that SDKs send as they are, and streams to parts that SDKs do not convert.

An SDK's own conversion looks at every field of every message against its types, each time a conversation is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encode_body(body: Mapping[str, Any]) -> bytes:
    """A body as the SDKs of OpenAI and Anthropic write it.

    Half of a character of two code units, which UTF-8 has no bytes for, becomes U+FFFD.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def in_order(body: Mapping[str, Any], *first: str) -> dict[str, Any]:
    """The fields of a body in the order of OpenAI's SDK: these first, the others by their names."""
    return {**{name: body[name] for name in first}, **dict(sorted(body.items()))}


def plain_parts(stream_class: Any) -> dict[str, Any]:
    """Arguments of an SDK's `post` that have it stream parts as they arrive.

    Args:
        stream_class: `AsyncStream` of that SDK.
    """
    return {"cast_to": object, "stream": True, "stream_cls": stream_class[object]}
