"""How much models are told to think, through the real SDKs, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.llm.anthropic import messages_of
from koi_lang.llm.cards import CARDS
from koi_lang.llm.connect import PROVIDERS, ModelEnvironment, connect
from koi_lang.llm.effort_list import EFFORT_CARDS
from koi_lang.llm.messages import (
    Delta,
    Discarded,
    Message,
    Request,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
    Thoughts,
    Usage,
)
from koi_lang.llm.models import card_of
from koi_lang.llm.thinking import FORMS
from koi_lang.llm.tools import ToolCall, ToolOffer, ToolResult, ToolSet
from koi_lang.settings import project, read_settings
from koi_lang.settings.efforts import EFFORTS
from tests.llm.server import Answer, Asked, ModelServer

REQUEST = Request("You follow a playbook.", (Message("user", "Begin."),))
# What of a body says how much to think.
FIELDS = ("reasoning_effort", "thinking", "reasoning", "enable_thinking", "output_config")
# One name for every row of the list, in its order.
NAMES = """
gpt-4o gpt-5-pro gpt-5.4-pro o3-2025-04-16 gpt-6.2-sol gpt-5.4-mini-2026-03-17
claude-fable-5-2 claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 claude-sonnet-5 claude-opus-4-6
claude-opus-4-5-20251101 claude-3-haiku
gemini-2.0-flash gemini-2.5-flash-lite gemini-pro-latest grok-4.3 grok-4.7 grok-3-mini grok-build-0.1
deepseek-v4-pro kimi-k3.1-pro kimi-k2.6 kimi-k2.7-code mistral-small-latest mistral-medium-3.5 mistral-large-4
codestral-latest qwen3.8-max llama3.2
""".split()


def asked_with(options: dict[str, Any], request: Request = REQUEST) -> Asked:
    """What the server received of a model with some options of an `llm` block."""

    async def run() -> Asked:
        async with ModelServer() as server:
            model = connect({**options, "base_url": server.url}, lambda name: "k")
            async for _ in model(request):
                pass
            await model.aclose()
            return server.requests[0]

    return asyncio.run(run())


async def no_pause(seconds: float) -> None:
    """A pause that takes no time."""


def deltas_of(provider: str, *answers: Answer) -> list[Delta]:
    """What arrives of an answer of a model of a provider."""

    async def run() -> list[Delta]:
        async with ModelServer(answers) as server:
            options = {"provider": provider, "base_url": server.url}
            model = connect(options, lambda name: "k", around=ModelEnvironment(sleep=no_pause))
            deltas = [delta async for delta in model(REQUEST)]
            await model.aclose()
            return deltas

    return asyncio.run(run())


def told(**options: Any) -> dict[str, Any]:
    """What a request with some options says of thinking."""
    body = asked_with(options).body
    return {name: body[name] for name in FIELDS if name in body}


def adaptive(effort: str) -> dict[str, Any]:
    """How a newer Claude is told."""
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}


@pytest.mark.parametrize(
    ("provider", "model", "effort", "expected"),
    [
        ("openai", "gpt-5.4", "none", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.4", "medium", {"reasoning_effort": "medium"}),
        ("openai", "o3", "none", {"reasoning_effort": "low"}),
        ("openai", "gpt-5-pro", "low", {"reasoning_effort": "high"}),
        ("openai", "gpt-4o", "high", {}),
        ("openai", "my-own-model", "low", {"reasoning_effort": "low"}),
        ("gemini", "gemini-2.5-flash", "none", {"reasoning_effort": "none"}),
        ("gemini", "gemini-flash-latest", "none", {"reasoning_effort": "low"}),
        ("groq", "openai/gpt-oss-120b", "low", {"reasoning_effort": "low"}),
        ("groq", "qwen/qwen3.8-27b", "medium", {"reasoning_effort": "default"}),
        ("groq", "qwen/qwen3.8-27b", "none", {"reasoning_effort": "none"}),
        ("deepseek", "deepseek-flash", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-flash", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("moonshot", "kimi-k3", "none", {"reasoning_effort": "low"}),
        ("moonshot", "kimi-k2.6", "low", {"thinking": {"type": "enabled"}}),
        ("moonshot", "kimi-k2.7-code", "low", {}),
        ("xai", "grok-4.5", "none", {"reasoning_effort": "low"}),
        ("qwen", "qwen3.8-max", "none", {"enable_thinking": False}),
        ("qwen", "qwen3.8-max", "low", {"enable_thinking": True}),
        ("together", "openai/gpt-oss-120b", "none", {"reasoning_effort": "low"}),
        ("together", "moonshotai/Kimi-K2.6", "none", {"reasoning": {"enabled": False}}),
        ("openrouter", "anthropic/claude-opus-5.5", "none", {"reasoning": {"effort": "none"}}),
        ("mistral", "mistral-small-latest", "low", {"reasoning_effort": "high"}),
        ("ollama", "gpt-oss:20b", "high", {"reasoning_effort": "high"}),
        ("anthropic", "claude-opus-5-5", "none", adaptive("low")),
        ("anthropic", "claude-opus-5-5", "high", adaptive("high")),
        ("anthropic", "haiku", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic", "sonnet", "none", {"thinking": {"type": "between_tools"}}),
        ("anthropic", "sonnet", "medium", adaptive("medium")),
        ("anthropic", "claude-haiku-4-5", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic", "claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_000}}),
        ("anthropic", "claude-3-haiku", "high", {}),
        ("anthropic", "claude-next", "low", adaptive("low")),
    ],
)
def test_a_vendor_is_told_in_its_own_words(provider: str, model: str, effort: str, expected: dict[str, Any]) -> None:
    """The nearest level that the model has, in the form of its provider; nothing where it cannot be told."""
    assert told(provider=provider, model=model, effort=effort) == expected


@pytest.mark.parametrize("provider", ["openai", "anthropic", "deepseek", "qwen"])
def test_nobody_is_told_anything_unasked(provider: str) -> None:
    """Without `effort` a request is as it was."""
    assert told(provider=provider) == {}


def test_a_claude_that_thinks_gets_room_for_it() -> None:
    """Thoughts count towards the limit of an answer, which is raised where nobody set it, up to the model's own."""
    blocks: list[dict[str, Any]] = [
        {"model": "claude-opus-5-5", "effort": "low"},
        {"model": "claude-opus-5-5", "effort": "medium", "max_tokens": 3000},
        {"model": "claude-opus-4-1", "effort": "high"},
        {"model": "claude-sonnet-4-6"},
    ]
    limits = [asked_with({"provider": "anthropic", **block}).body["max_tokens"] for block in blocks]

    assert [12_000, 3000, 32_000, 8000] == limits


def test_a_claude_that_thinks_unasked_gets_room_for_it() -> None:
    """As much as for the level that its vendor names as its usual one, and none where it is told not to think."""
    blocks: list[dict[str, Any]] = [
        {"model": "claude-opus-5-5"},
        {"model": "sonnet"},
        {"model": "claude-fable-5-1", "effort": "none"},
        {"model": "claude-opus-5", "effort": "none"},
    ]
    limits = [asked_with({"provider": "anthropic", **block}).body["max_tokens"] for block in blocks]

    assert [20_000, 32_000, 12_000, 8000] == limits


def test_a_budget_of_thoughts_leaves_half_of_the_answer() -> None:
    """An older Claude is told a number below its limit; where that would be too small, it is not told to think."""
    model = {"provider": "anthropic", "model": "claude-haiku-4-5", "effort": "low"}

    assert {"thinking": {"type": "enabled", "budget_tokens": 1500}} == told(**model, max_tokens=3000)
    assert {} == told(**model, max_tokens=2000)


def test_a_claude_that_thinks_is_sent_no_temperature() -> None:
    """It refuses a request with both; without thoughts the temperature counts."""
    model = {"provider": "anthropic", "model": "claude-sonnet-4-6", "temperature": 0.2}

    assert "temperature" not in asked_with({**model, "effort": "low"}).body
    assert 0.2 == asked_with({**model, "effort": "none"}).body["temperature"]


def test_an_effort_and_a_schema_stand_side_by_side() -> None:
    """Both are part of what Anthropic calls the configuration of the output."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    strict = {**schema, "additionalProperties": False}
    request = Request("", (Message("user", "Begin."),), json=True, schema=strict)

    sent = asked_with({"provider": "anthropic", "model": "sonnet", "effort": "low"}, request).body["output_config"]

    assert {"effort": "low", "format": {"type": "json_schema", "schema": strict}} == sent


def test_an_effort_holds_for_a_fallback() -> None:
    """What a model in `fallback` leaves open is taken from the first one."""
    model = connect({"model": "openai/gpt-5.4", "effort": "low", "fallback": ["openai/o3"]}, lambda name: "k")

    assert ["low", "low"] == [each.inner.connection.effort for each in model._models]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "near"), [("hihg", "Did you mean `high`? "), ("", ""), (True, ""), (3, ""), ([], "")]
)
def test_an_effort_that_does_not_exist_is_refused(given: Any, near: str) -> None:
    """Options that come from code are looked at when the model is connected."""
    with pytest.raises(SettingsError) as caught:
        connect({"provider": "openai", "effort": given}, lambda name: "k")

    assert f"`effort` cannot be {given!r}" == caught.value.message
    assert f"{near}There are `none`, `low`, `medium` and `high`." == caught.value.help


def test_an_effort_of_koi_toml_is_looked_at(tmp_path: Path) -> None:
    """The table of a role may name one; another word is refused where the file is read."""
    toml = tmp_path / "koi.toml"
    toml.write_text('[models]\ndefault = { model = "openai/o3", effort = "low" }\n', "utf-8")
    read = project.models(read_settings(tmp_path))
    toml.write_text('[models]\ndefault = { model = "openai/o3", effort = "lo" }\n', "utf-8")

    with pytest.raises(SettingsError) as caught:
        project.models(read_settings(tmp_path))

    assert {"default": {"model": "openai/o3", "effort": "low"}} == read
    assert "`default` in `[models]` of `koi.toml` has an `effort` 'lo'" == caught.value.message


def test_every_row_of_the_list_is_reached() -> None:
    """No pattern hides behind one before it, and levels are those that there are, in their order."""
    cards = [card_of(name) for name in NAMES]

    assert [(row.efforts, row.usual) for row in EFFORT_CARDS] == [(card.efforts, card.usual_effort) for card in cards]
    assert all([level for level in EFFORTS if level in row.efforts] == [*row.efforts] for row in EFFORT_CARDS)


def test_default_models_are_known_and_forms_exist() -> None:
    """It is known of every model that is used when nobody chooses, but of the one that chooses itself."""
    assert ["openrouter/auto"] == [row.model for row in PROVIDERS if row.model and card_of(row.model).efforts is None]
    assert {row.effort_form for row in PROVIDERS} == set(FORMS)
    assert all(card.efforts is None for card in CARDS)


# ---------------------------------------------------------------- what models show of their thoughts

ACTION = '{"intent": "shell", "command": "rm -rf /"}'
BOTH = pytest.mark.parametrize(("provider", "stop"), [("openai", "stop"), ("anthropic", "end_turn")])


@BOTH
def test_thoughts_come_apart_from_the_answer(provider: str, stop: str) -> None:
    """Each piece is a delta of its own kind, whatever stands in it; the tokens of thoughts are counted."""
    answer = Answer(pieces=("yes",), thoughts=("Hm. ", ACTION), usage=(7, 30, 2), thought_tokens=20)

    expected = [ThinkingDelta("Hm. "), ThinkingDelta(ACTION), TextDelta("yes")]
    assert [*expected, StreamEnd(Usage(7, 30, 2, thinking_tokens=20), stop)] == deltas_of(provider, answer)


def test_thoughts_stand_in_several_places() -> None:
    """Servers that speak as OpenAI does have two fields for them, and Mistral a part of the content."""
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    mixed = Answer(pieces=([part], [part, {"type": "text", "text": "yes"}]))

    other = deltas_of("openai", Answer(pieces=("yes",), thoughts=("Hm.",), thoughts_in="reasoning"))

    assert [ThinkingDelta("Hm."), TextDelta("yes")] == other[:2]
    expected = [ThinkingDelta("Hm."), ThinkingDelta("Hm."), TextDelta("yes")]
    assert expected == deltas_of("mistral", mixed)[:3]


def test_thoughts_said_twice_are_shown_once() -> None:
    """Some servers fill both fields with the same text."""
    delta = {"reasoning": "Hm.", "reasoning_content": "Hm."}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    raw = json.dumps({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})

    assert [ThinkingDelta("Hm.")] == deltas_of("openai", Answer(pieces=(), raw=f"data: {raw}\n\n"))[:1]


def test_thoughts_that_only_the_total_counts_are_paid_for() -> None:
    """Google and xAI leave them out of the tokens of the answer."""
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 110}
    end = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "usage": usage}
    raw = json.dumps({**end, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    assert StreamEnd(Usage(9, 101), "stop") == deltas_of("gemini", Answer(raw=f"data: {raw}\n\n"))[-1]


@BOTH
def test_a_stream_that_breaks_while_it_thinks_is_asked_for_again(provider: str, stop: str) -> None:
    """Nothing of the answer was handed out, so another attempt is made; the first one is counted."""
    broken = Answer(thoughts=("Hm. ", "So."), cut_after={"openai": 2, "anthropic": 4}[provider])

    deltas = deltas_of(provider, broken, Answer(pieces=("yes",), thoughts=("Hm.",)))

    kinds = [ThinkingDelta, ThinkingDelta, Discarded, ThinkingDelta, TextDelta, StreamEnd]
    assert kinds == [type(delta) for delta in deltas]


# ---------------------------------------------------------------- thoughts that are sent back

CALLS = (ToolCall("look", "{}"),)
SIGNED = '{"type": "thinking", "thinking": "Hm.", "signature": "s"}'


@pytest.mark.parametrize(
    ("thoughts", "thinker", "kinds"),
    [
        ((SIGNED,), "claude-opus-5-5", ["thinking", "tool_use"]),
        ((), "claude-opus-5-5", ["tool_use"]),
        ((SIGNED,), "claude-fable-5-2", []),
        (None, "", []),
        (('{"calls": 0, "item": {"type": "reasoning"}}',), "claude-opus-5-5", []),
    ],
)
def test_a_claude_that_thinks_sees_its_calls_where_its_thoughts_are_known(
    thoughts: tuple[str, ...] | None, thinker: str, kinds: list[str]
) -> None:
    """Else, and where another model thought, it is told of them as text: it would miss its own thoughts."""
    kept = None if thoughts is None else Thoughts(thinker, thoughts)
    answered = Message("assistant", "I looked.", calls=CALLS, thoughts=kept)
    told = Message("user", "Found.", results=(ToolResult("Found."),))
    offer = ToolOffer("Call tools.", ToolSet(()))

    request = Request("", (*REQUEST.messages, answered, told), "claude-opus-5-5", offer=offer)
    _, again, after = messages_of(request, thinks=True)

    assert kinds == ([block["type"] for block in again["content"]] if kinds else [])
    assert kinds or again["content"] == "I looked."
    assert ["tool_result" if kinds else "text"] == [block["type"] for block in after["content"]]
