"""Answers that a server sends as one document, though a stream was asked for, to the parts of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang.llm.stream_fields import field, first, word


async def read_document(stream: Any) -> Any:
    """The JSON document that a response consists of; None where it is a stream of events, or something else.

    Some servers call a stream JSON; what was read of it is kept, so that it can be read again.

    Raises:
        ValueError: it is not well formed; so RecursionError.
    """
    response = getattr(stream, "response", None)
    if response is None or "json" not in response.headers.get("content-type", ""):
        return None
    text = (await response.aread()).lstrip(b"\xef\xbb\xbf \t\r\n")
    return json.loads(text) if text[:1] in (b"{", b"[") else None


def is_error(document: Any) -> bool:
    """Whether a document is an error in place of an answer."""
    return bool(field(document, "error")) or "error" in (word(document, "type"), word(document, "object"))


def parts_of_completion(document: Any) -> Iterator[Mapping[str, Any]]:
    """The chunk that equals a chat completion."""
    choice = first(field(document, "choices"))
    if choice is None:
        return
    message = field(choice, "message")
    message = message if isinstance(message, Mapping) else {"content": word(choice, "text")}
    calls = message.get("tool_calls")
    calls = [calls] if isinstance(calls, Mapping) else calls if isinstance(calls, list) else []
    indexed = [{**call, "index": n} for n, call in enumerate(calls) if isinstance(call, Mapping)]
    delta = {**message, "tool_calls": indexed}
    reason = word(choice, "finish_reason") or "stop"
    yield {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": field(document, "usage")}


def parts_of_message(document: Any) -> Iterator[Mapping[str, Any]]:
    """The events that equal a message of Anthropic's interface."""
    content = field(document, "content")
    if not isinstance(content, (str, list)):
        return
    usage = field(document, "usage")
    yield {"type": "message_start", "message": {"usage": usage}}
    for index, block in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": word(document, "stop_reason") or "end_turn"}
    yield {"type": "message_delta", "delta": end, "usage": usage}


def parts_of_response(document: Any) -> Iterator[Mapping[str, Any]]:
    """The event that equals a response of OpenAI's newer interface."""
    if isinstance(field(document, "output"), list):
        yield {"type": f"response.{word(document, 'status') or 'completed'}", "response": document}
