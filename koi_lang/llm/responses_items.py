"""A conversation, and the tools it offers, as OpenAI's Responses interface takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, merge_turns
from koi_lang.llm.tool_turns import Exchange, exchanges
from koi_lang.llm.tools import NativeTool, ToolOffer


def items_of(request: Request) -> list[dict[str, Any]]:
    """The items of a request, the system text first: the word JSON has to stand in them where JSON is asked for.

    Calls of tools are told as such where it offers tools, behind what the model thought before them.
    """
    if request.offer is None:
        turns = merge_turns((Message("system", request.system), *request.messages))
        return [_message(turn) for turn in turns if turn.text or turn.images]
    told = [_message(Message("system", request.offer.system))]
    for turn in exchanges(request.messages, request.model):
        told += _exchange(turn) if isinstance(turn, Exchange) else [_message(turn)]
    return told


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": "required"} if is_forced else {}
    return {**choice, "tools": [_tool(tool) for tool in offer.set.tools]}


def thought_text(item: Mapping[str, Any], calls: int) -> str:
    """What a model thought as a text to keep; `calls` is how many calls it had begun before."""
    known = {name: value for name, value in item.items() if value is not None}
    return json.dumps({"calls": calls, "item": known}, ensure_ascii=False)


def _thoughts(texts: tuple[str, ...] | None) -> list[tuple[int, dict[str, Any]]]:
    """What such texts hold; those of models of other interfaces are passed over."""
    read = [json.loads(text) for text in texts or ()]
    return [(each["calls"], each["item"]) for each in read if isinstance(each, dict) and "item" in each]


def _tool(tool: NativeTool) -> dict[str, Any]:
    """A tool; one that leaves something open has to say so, since it would be closed."""
    described = {"type": "function", "name": tool.name, "description": tool.description}
    return {**described, "parameters": tool.parameters, "strict": can_be_sent(tool.parameters)}


def _exchange(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Thoughts and calls in the order in which they came, then the results.

    The ids of calls are ours alone: an id of the provider's would have it look for what it thought before.
    """
    thoughts = _thoughts(exchange.thoughts)
    last = len(exchange.calls) - 1
    said = [_message(Message("assistant", exchange.text))] if exchange.text else []
    for number, (id, call) in enumerate(exchange.calls):
        yield from (item for calls, item in thoughts if min(calls, last) == number)
        yield from said if number == 0 else ()
        yield {"type": "function_call", "call_id": id, "name": call.name, "arguments": call.arguments}
    for id, result in exchange.results:
        shown = _content(Message("user", result.text, result.images))
        yield {"type": "function_call_output", "call_id": id, "output": shown}
    if exchange.rest is not None:
        yield _message(exchange.rest)


def _message(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _content(turn)}


def _content(turn: Message) -> str | list[dict[str, Any]]:
    if not turn.images:
        return turn.text
    shown = [{"type": "input_image", "detail": "auto", "image_url": image.url} for image in turn.images]
    text = [{"type": "input_text", "text": turn.text}] if turn.text else []
    return [*shown, *text]
