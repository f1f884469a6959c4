"""A conversation, and the tools it offers, as the chat completions interface takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from koi_lang.llm.chat_thoughts import fields_of_calls, fields_of_message
from koi_lang.llm.connection import Provider
from koi_lang.llm.images import Image
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.messages import Message, Request, merge_turns
from koi_lang.llm.tool_turns import Exchange, exchanges, with_images_apart
from koi_lang.llm.tools import NativeTool, ToolOffer

# What stands between results and a person's words where these may not follow them.
HEARD = "OK."


def messages_of(request: Request, row: Provider) -> list[dict[str, Any]]:
    """The messages of a request, the system text first; calls of tools are told as such where it offers tools."""
    if request.offer is None:
        turns = merge_turns((Message("system", request.system), *request.messages))
        return [_message(turn) for turn in turns if turn.text or turn.images]
    told = [_message(Message("system", request.offer.system))]
    for turn in exchanges(request.messages, request.model):
        told += _exchange(turn, row) if isinstance(turn, Exchange) else [_message(turn)]
    return told


def tools_of(offer: ToolOffer, *, is_forced: bool) -> dict[str, Any]:
    """The fields of a body that offer tools."""
    choice = {"tool_choice": "required"} if is_forced else {}
    return {"tools": [_tool(tool) for tool in offer.set.tools], **choice}


def _tool(tool: NativeTool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    is_strict = {"strict": True} if can_be_sent(tool.parameters) else {}
    return {"type": "function", "function": function | is_strict}


def _exchange(exchange: Exchange, row: Provider) -> Iterator[dict[str, Any]]:
    """Calls and their results; images of results are shown by the person, since results are texts there."""
    own = fields_of_calls(exchange.thoughts, row.thoughts, len(exchange.calls))
    yield {
        "role": "assistant",
        "content": exchange.text or None,
        **fields_of_message(exchange.thoughts, row.thoughts),
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}, **fields}
            for (id, call), fields in zip(exchange.calls, own, strict=True)
        ],
    }
    for id, result in exchange.results:
        yield {"role": "tool", "tool_call_id": id, "content": result.text}
    rest = with_images_apart(exchange)
    if rest is None:
        return
    if not row.user_after_results:
        yield _message(Message("assistant", HEARD))
    yield _message(rest)


def _message(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": _content(turn.text, turn.images)}


def _content(text: str, images: tuple[Image, ...]) -> str | list[dict[str, Any]]:
    if not images:
        return text
    shown = [{"type": "image_url", "image_url": {"url": image.url}} for image in images]
    return [*shown, {"type": "text", "text": text}] if text else shown
