"""What a model thought before its calls goes back to servers that speak chat completions and refuse calls without."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from koi_lang.llm.chat_thoughts import ThoughtKeeper
from koi_lang.llm.connect import provider_named
from koi_lang.llm.messages import Message, Request, StreamEnd, Thoughts
from koi_lang.llm.tools import ToolCall, ToolOffer, ToolResult, ToolSet
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import adapter

OFFER = ToolOffer("Call tools.", ToolSet(()))
ASKED = (Message("user", "Begin."),)
CALLS = (ToolCall("look", "{}"), ToolCall("look", "{}"))
SIGNED = {"google": {"thought_signature": "c2ln"}}
UNKNOWN = {"google": {"thought_signature": "skip_thought_signature_validator"}}
CLAUDE = ('{"type": "thinking", "thinking": "Hm.", "signature": "s"}',)


def _again(provider: str, thoughts: tuple[str, ...] | None, *answers: Answer) -> tuple[Any, Any]:
    """The message with two calls as a provider gets it back, and what is kept of its next answer."""
    kept = None if thoughts is None else Thoughts("some-model", thoughts)
    said = Message("assistant", "I looked.", calls=CALLS, thoughts=kept)
    results = (ToolResult("one"), ToolResult("two"))
    request = Request("", (*ASKED, said, Message("user", "one two", results=results)), json=True, offer=OFFER)

    async def run() -> tuple[Any, Any]:
        async with ModelServer(answers or ["{}"]) as server:
            model = adapter("openai", server.url, provider=provider_named(provider), transport="tools")
            try:
                ends = [delta async for delta in model(request) if isinstance(delta, StreamEnd)]
            finally:
                await model.aclose()
            return server.requests[0].body["messages"][2], None if ends[0].thoughts is None else ends[0].thoughts.blocks

    return asyncio.run(run())


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n"


def _call(n: int, **more: Any) -> dict[str, Any]:
    return {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}, **more}


@pytest.mark.parametrize("at", [0, 1])
def test_gemini_gets_its_signatures_back(at: int) -> None:
    """Each with the call that it came with, as it came."""
    calls = [_call(n, **({"extra_content": SIGNED} if n == at else {})) for n in (0, 1)]
    raw = _chunk({"tool_calls": calls}) + _chunk({}, "tool_calls")
    _, kept = _again("gemini", None, Answer((), raw=raw))
    message, _ = _again("gemini", kept)

    assert SIGNED == message["tool_calls"][at]["extra_content"]
    assert (UNKNOWN if at else None) == message["tool_calls"][1 - at].get("extra_content")


@pytest.mark.parametrize("thoughts", [None, (), CLAUDE])
def test_gemini_is_told_that_thoughts_are_not_known(thoughts: tuple[str, ...] | None) -> None:
    """After another model, or when a run goes on, the first of calls that go together has Google's stand-in."""
    message, _ = _again("gemini", thoughts)

    assert [UNKNOWN, None] == [call.get("extra_content") for call in message["tool_calls"]]


@pytest.mark.parametrize("provider", ["deepseek", "moonshot"])
def test_reasoning_goes_back_with_calls(provider: str) -> None:
    """All of it in one text; where it is not known, an empty one."""
    raw = "".join(_chunk({"reasoning_content": piece}) for piece in ("The person ", "asks."))
    raw += _chunk({"tool_calls": [_call(0)]}) + _chunk({}, "tool_calls")
    _, kept = _again(provider, CLAUDE, Answer((), raw=raw))

    assert "The person asks." == _again(provider, kept)[0]["reasoning_content"]
    assert "" == _again(provider, None)[0]["reasoning_content"]


def test_details_go_back_whole() -> None:
    """Pieces of one item are joined, the signature at the end of it too, and items stay in their order."""
    pieces = [
        {"type": "reasoning.text", "text": "The person ", "format": "f", "index": 0, "signature": None},
        {"type": "reasoning.text", "text": "asks.", "format": "f", "index": 0},
        {"type": "reasoning.text", "signature": "c2ln", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "ZW5j", "id": "r1", "format": "f", "index": 1},
    ]
    raw = "".join(_chunk({"reasoning_details": [piece, "text", None]}) for piece in pieces)
    _, kept = _again("openrouter", None, Answer((), raw=raw + _chunk({"tool_calls": [_call(0)]}, "tool_calls")))
    text = {"type": "reasoning.text", "text": "The person asks.", "format": "f", "index": 0, "signature": "c2ln"}

    assert [text, pieces[-1]] == _again("openrouter", kept)[0]["reasoning_details"]
    assert "reasoning_details" not in _again("openrouter", None)[0]


def test_many_pieces_take_time_in_proportion() -> None:
    """A hundred thousand pieces are joined once."""
    keepers = [ThoughtKeeper(name) for name in ("reasoning_content", "reasoning_details")]
    delta = {"reasoning_content": "x" * 50, "reasoning_details": [{"type": "reasoning.text", "text": "x" * 50}]}
    start = time.process_time()
    for keeper in keepers:
        for _ in range(100_000):
            keeper.add_delta(delta)
    lengths = [len(text) for keeper in keepers for text in keeper.texts or ()]

    assert all(5_000_000 < length < 5_001_000 for length in lengths)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("provider", ["openai", "groq", "mistral"])
def test_others_get_nothing_that_they_do_not_know(provider: str) -> None:
    """What another model thought is no field of theirs."""
    kept = ('{"field": "reasoning_content", "value": "Hm."}', '{"field": "extra_content", "call": 0, "value": {}}')
    message, own = _again(provider, kept)

    assert {"role", "content", "tool_calls"} == message.keys()
    assert all({"id", "type", "function"} == call.keys() for call in message["tool_calls"])
    assert own is None


@pytest.mark.parametrize("extra", ["text", 7, [1], None])
def test_what_is_no_object_is_not_kept(extra: Any) -> None:
    """A hostile server says what it likes."""
    raw = _chunk({"tool_calls": [_call(0, extra_content=extra)]}) + _chunk({}, "tool_calls")

    assert () == _again("gemini", None, Answer((), raw=raw))[1]
