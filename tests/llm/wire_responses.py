"""Answers of the model server as events of OpenAI's Responses interface, held against the types of the SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import count
from typing import Any

from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.llm.wire import Answer

# Why an answer ends, as the other interfaces say it, and as this one does.
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


@lru_cache(maxsize=1)
def event_types() -> TypeAdapter[Any]:
    """All events that the SDK knows."""
    return TypeAdapter(ResponseStreamEvent)


def responses_events(answer: Answer) -> Iterator[str]:
    """The events of a response, each as the SDK's types say that it looks."""
    sequence = count()
    for event in events_of(answer):
        if isinstance(event, str):
            yield event
            return
        numbered = {"sequence_number": next(sequence), **event}
        event_types().validate_python(numbered)
        yield f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n"


def response_of(answer: Answer, status: str = "completed") -> dict[str, Any]:
    """A whole response."""
    items = list(_items(answer)) if status != "in_progress" else []
    reason = INCOMPLETE.get(answer.stop_reason)
    status = "incomplete" if reason and status == "completed" else status
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "x",
        "status": status,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "usage": _usage(answer) if status != "in_progress" else None,
    }


def events_of(answer: Answer) -> Iterator[dict[str, Any] | str]:
    """The events of a response, without their numbers."""
    yield {"type": "response.created", "response": response_of(answer, "in_progress")}
    yield {"type": "response.in_progress", "response": response_of(answer, "in_progress")}
    for index, item in enumerate(_items(answer)):
        yield from ({"output_index": index, **event} for event in _item_events(item, answer))
    if answer.raw:
        yield answer.raw
        return
    whole = response_of(answer)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _items(answer: Answer) -> Iterator[dict[str, Any]]:
    """What the answer consists of, whole."""
    if answer.thoughts:
        summary = [{"type": "summary_text", "text": "".join(answer.thoughts)}]
        yield {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": answer.signature}
    if answer.refusal:
        yield _message([{"type": "refusal", "refusal": answer.refusal}])
    elif answer.pieces and not answer.calls_tool and not (answer.calls and answer.pieces == ("ok",)):
        yield _message([{"type": "output_text", "text": "".join(answer.pieces), "annotations": []}])
    calls = (("look", ("{}",)),) if answer.calls_tool else answer.calls
    for number, (name, arguments) in enumerate(calls):
        about = {"type": "function_call", "id": f"fc_{number}", "call_id": f"id{number}", "status": "completed"}
        yield {**about, "name": name, "arguments": "".join(arguments)}


def _message(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _item_events(item: Mapping[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    """An item as it grows: empty, its pieces, and as a whole."""
    grows = {"message": "content", "function_call": "arguments", "reasoning": "summary"}[item["type"]]
    empty = {**item, grows: "" if grows == "arguments" else []}
    empty.pop("encrypted_content", None)
    yield {"type": "response.output_item.added", "item": empty}
    yield from ({"item_id": item["id"], **event} for event in _growth(item, answer))
    yield {"type": "response.output_item.done", "item": dict(item)}


def _growth(item: Mapping[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    if item["type"] == "function_call":
        pieces = ("{}",) if answer.calls_tool else answer.calls[int(item["id"].removeprefix("fc_"))][1]
        yield from ({"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces)
        done = {"type": "response.function_call_arguments.done", "name": item["name"]}
        yield {**done, "arguments": item["arguments"]}
    elif item["type"] == "reasoning":
        part = {"summary_index": 0}
        empty = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", "part": empty, **part}
        for piece in answer.thoughts:
            yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **part}
        text = item["summary"][0]["text"]
        yield {"type": "response.reasoning_summary_text.done", "text": text, **part}
        yield {"type": "response.reasoning_summary_part.done", "part": item["summary"][0], **part}
    else:
        yield from ({"content_index": 0, **event} for event in _content_events(item["content"][0], answer))


def _content_events(content: Mapping[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    if content["type"] == "refusal":
        yield {"type": "response.content_part.added", "part": {"type": "refusal", "refusal": ""}}
        yield {"type": "response.refusal.delta", "delta": answer.refusal}
        yield {"type": "response.refusal.done", "refusal": answer.refusal}
    else:
        empty = {**content, "text": ""}
        yield {"type": "response.content_part.added", "part": empty}
        yield from ({"type": "response.output_text.delta", "delta": each, "logprobs": []} for each in answer.pieces)
        yield {"type": "response.output_text.done", "text": content["text"], "logprobs": []}
    yield {"type": "response.content_part.done", "part": dict(content)}


def _usage(answer: Answer) -> dict[str, Any] | None:
    if answer.usage is None:
        return None
    given, made, cached = answer.usage
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": answer.thought_tokens},
        "total_tokens": given + made,
    }
