"""What the model server does with a request, and its answers as events of OpenAI and of Anthropic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request.

    Attributes:
        pieces: the text of the answer, one event each; of OpenAI also content in parts.
        usage: input, output and cached tokens; None sends none.
        status: anything but 200 sends `error` as an error document.
        cut_after: close the connection after this many events.
        raw: an event sent as it is after the pieces, well formed or not.
        page: sent instead of events, as HTML.
        pause: wait for `ModelServer.go_on` after the first piece.
        silent: wait for `ModelServer.go_on` before anything is sent.
        reset: a cut closes the connection with a reset rather than an orderly end.
        refusal: what a model says that declines to answer; Anthropic's only says that it does.
        calls_tool: the answer is the call of a tool.
        calls: the answer calls tools: of each the name, and the pieces of its arguments, one event each.
        document: sent as JSON instead of events, as by servers that do not stream.
        kind: the content type that events are said to have.
        signature: by which a provider knows thoughts again.
        thoughts: what the model thinks before it answers, one event each.
        thoughts_in: the field of a delta in which a server that speaks as OpenAI does puts them.
        thought_tokens: how many of the output the model thought.
    """

    pieces: tuple[Any, ...] = ("ok",)
    usage: tuple[int, int, int] | None = (7, 3, 2)
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    raw: str = ""
    page: str = ""
    pause: bool = False
    silent: bool = False
    reset: bool = False
    refusal: str = ""
    calls_tool: bool = False
    stop_reason: str = ""
    thoughts: tuple[str, ...] = ()
    thoughts_in: str = "reasoning_content"
    thought_tokens: int = 0
    calls: tuple[tuple[str, tuple[str, ...]], ...] = ()
    signature: str = "c2ln"
    document: Any = None
    kind: str = "text/event-stream"


def call(name: str, /, **arguments: Any) -> tuple[str, tuple[str, ...]]:
    """A call of a tool, its arguments in pieces of a few characters."""
    text = json.dumps(arguments, ensure_ascii=False)
    return name, tuple(text[start : start + 7] for start in range(0, len(text), 7))


def openai_events(answer: Answer, *, with_usage: bool) -> Iterator[str]:
    """The events of a chat completion."""
    for delta in _openai_deltas(answer):
        yield _chunk([{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}])
    if answer.raw:
        yield answer.raw
        return
    usual = "tool_calls" if answer.calls_tool or answer.calls else "stop"
    yield _chunk([{"index": 0, "delta": {}, "finish_reason": answer.stop_reason or usual}])
    if answer.usage and with_usage:
        yield _chunk([], usage=_openai_usage(*answer.usage, answer.thought_tokens))
    yield "data: [DONE]\n\n"


def _openai_deltas(answer: Answer) -> Iterator[Mapping[str, Any]]:
    if answer.refusal:
        yield {"refusal": answer.refusal}
    elif answer.calls_tool:
        yield {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "look", "arguments": "{}"}}]}
    else:
        yield from ({answer.thoughts_in: thought} for thought in answer.thoughts)
        yield from ({"content": piece} for piece in answer.pieces if not _only_calls(answer))
        for index, (name, arguments) in enumerate(answer.calls):
            begun = {
                "index": index,
                "id": f"id{index}",
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            yield {"tool_calls": [begun]}
            yield from ({"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in arguments)


def embeddings(texts: Sequence[str], embed: Callable[[str], Sequence[float]]) -> dict[str, Any]:
    """The answer to a request for embeddings, in another order than asked for; a word counts as a token."""
    data = [{"object": "embedding", "index": n, "embedding": list(embed(text))} for n, text in enumerate(texts)]
    tokens = sum(len(text.split()) for text in texts)
    return {
        "object": "list",
        "data": data[::-1],
        "model": "x",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def anthropic_events(answer: Answer) -> Iterator[str]:
    """The events of a message."""
    given, made, cached = answer.usage or (0, 0, 0)
    usage = {"input_tokens": given - cached, "output_tokens": 1, "cache_read_input_tokens": cached}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    counted = {"usage": usage if answer.usage else None}
    yield _event("message_start", {"message": {**message, **counted, "stop_reason": None, "stop_sequence": None}})
    if answer.thoughts:
        yield from _thinking_block(answer)
    yield from _anthropic_block(answer)
    if answer.raw:
        yield answer.raw
        return
    yield _event("content_block_stop", {"index": 0})
    usual = "refusal" if answer.refusal else "tool_use" if answer.calls_tool or answer.calls else "end_turn"
    delta = {"stop_reason": answer.stop_reason or usual, "stop_sequence": None}
    details = {"output_tokens_details": {"thinking_tokens": answer.thought_tokens}} if answer.thought_tokens else {}
    usage = {"output_tokens": made, **details}
    yield _event("message_delta", {"delta": delta, "usage": usage if answer.usage else None})
    yield _event("message_stop", {})


def _thinking_block(answer: Answer) -> Iterator[str]:
    """What the model thinks, and at its end the signature by which the vendor knows it again."""
    block = {"type": "thinking", "thinking": "", "signature": ""}
    yield _event("content_block_start", {"index": 0, "content_block": block})
    for thought in answer.thoughts:
        yield _event("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": thought}})
    yield _event(
        "content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": answer.signature}}
    )
    yield _event("content_block_stop", {"index": 0})


def _anthropic_block(answer: Answer) -> Iterator[str]:
    if answer.calls_tool:
        tool = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
        yield _event("content_block_start", {"index": 0, "content_block": tool})
        return
    yield _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in () if answer.refusal or _only_calls(answer) else answer.pieces:
        yield _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}})
    for index, (name, arguments) in enumerate(answer.calls, 1):
        block = {"type": "tool_use", "id": f"id{index}", "name": name, "input": {}}
        yield _event("content_block_start", {"index": index, "content_block": block})
        for piece in arguments:
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})


def _only_calls(answer: Answer) -> bool:
    return bool(answer.calls) and answer.pieces == ("ok",)


def _chunk(choices: list[dict[str, Any]], usage: Mapping[str, Any] | None = None) -> str:
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": choices}
    return f"data: {json.dumps({**document, 'usage': usage})}\n\n"


def _openai_usage(given: int, made: int, cached: int, thought: int) -> dict[str, Any]:
    counts = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    details = {"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}, **details}


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"
