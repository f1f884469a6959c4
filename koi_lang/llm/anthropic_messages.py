"""A conversation, and the tools it offers, as Anthropic's messages interface takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from koi_lang.llm.images import Image
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, merge_turns
from koi_lang.llm.tool_turns import Exchange, exchanges, own_thoughts
from koi_lang.llm.tools import NativeTool, ToolCall, ToolOffer, ToolResult

REMEMBERED_TURNS = 2
REMEMBER = {"cache_control": {"type": "ephemeral"}}


def system_of(request: Request) -> list[dict[str, Any]]:
    """The system text, to be remembered by the provider, then what was added in the conversation."""
    added = [turn.text for turn in request.messages if turn.role == "system"]
    system = request.system if request.offer is None else request.offer.system
    first, *rest = [text for text in (system, *added) if text.strip()] or [""]
    return [_block(first) | REMEMBER, *map(_block, rest)] if first else []


def messages_of(request: Request, *, thinks: bool = False) -> list[dict[str, Any]]:
    """The conversation without its system turns; calls of tools are told as such where it offers tools.

    The last turns of the user end what the provider remembers: a playbook's next request repeats everything up to the
    last one, and finds what the request before had stored at the one before it.

    Args:
        thinks: whether the model is to think; calls whose thoughts are not known are told as text then, since it wants
            to see again what it thought before it called.
    """
    said = [turn for turn in request.messages if turn.role != "system" and (turn.text.strip() or turn.images)]
    if request.offer is None:
        turns = [_turn(turn) for turn in merge_turns(said)]
    else:
        known = [_without_unexplained_calls(turn, request.model) for turn in said] if thinks else said
        turns = [each for turn in exchanges(known, request.model) for each in _as_turns(turn)]
    asked = [index for index, turn in enumerate(turns) if turn["role"] == "user"]
    for index in asked[-REMEMBERED_TURNS:]:
        turns[index]["content"] = _end_memory(turns[index]["content"])
    return turns


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": {"type": "any"}} if is_forced else {}
    return {**choice, "tools": [_tool(tool) for tool in offer.set.tools]}


def _tool(tool: NativeTool) -> dict[str, Any]:
    """A tool whose arguments are streamed as the model writes them."""
    is_strict = {"strict": True} if can_be_sent(tool.parameters) else {}
    described = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
    return {**described, "eager_input_streaming": True, **is_strict}


def _without_unexplained_calls(turn: Message, model: str) -> Message:
    """A turn without its calls, where it is not known what a Claude thought before them."""
    return replace(turn, calls=()) if turn.calls and _thoughts(own_thoughts(turn, model)) is None else turn


def _as_turns(turn: Message | Exchange) -> Iterator[dict[str, Any]]:
    if isinstance(turn, Message):
        yield _turn(turn)
        return
    thoughts = _thoughts(turn.thoughts) or []
    said = [{"type": "text", "text": turn.text}] if turn.text else []
    yield {"role": "assistant", "content": [*thoughts, *said, *(_call(id, call) for id, call in turn.calls)]}
    told = [_result(id, result) for id, result in turn.results]
    yield {"role": "user", "content": [*told, *(_blocks(turn.rest) if turn.rest is not None else [])]}


def _thoughts(texts: tuple[str, ...] | None) -> list[dict[str, Any]] | None:
    """The blocks in which a Claude thought; None where that is not known, or another model thought."""
    blocks = [json.loads(text) for text in texts or ()]
    are_known = texts is not None and all(isinstance(block, dict) and "type" in block for block in blocks)
    return blocks if are_known else None


def _call(id: str, call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": call.name, "input": _input(call.arguments)}


def _input(arguments: str) -> dict[str, Any]:
    """Arguments as the object that they must be."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _result(id: str, result: ToolResult) -> dict[str, Any]:
    failed = {"is_error": True} if result.is_error else {}
    shown = [_block(result.text), *map(_picture, result.images)] if result.images else result.text
    return {"type": "tool_result", "tool_use_id": id, "content": shown, **failed}


def _turn(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _blocks(turn) if turn.images else turn.text}


def _end_memory(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content of a message, at whose end the provider remembers what it has read."""
    blocks = [_block(content)] if isinstance(content, str) else content
    return [*blocks[:-1], blocks[-1] | REMEMBER]


def _blocks(turn: Message) -> list[dict[str, Any]]:
    return [*map(_picture, turn.images), *([_block(turn.text)] if turn.text.strip() else [])]


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
