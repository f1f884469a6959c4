"""How providers are told that the answer is JSON: by a schema, as a mode, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.llm.messages import Message, Request, TextDelta
from koi_lang.llm.providers import connect
from koi_lang.llm.schemas import is_strict
from tests.llm.server import ModelServer

ANSWER = '{"intent": "return", "data": 7}'
TEXT = {"type": "string"}
STRICT = {
    "type": "object",
    "properties": {"intent": TEXT, "data": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
    "required": ["intent", "data"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"intent": TEXT, "data": {}}, "required": ["intent"]}
LIST = {"type": "array", "items": STRICT}
REQUEST = Request("Answer in JSON.", (Message("user", "Begin."),), json=True, schema=STRICT)

JSON_MODE = {"type": "json_object"}
OF_OPENAI = {"type": "json_schema", "json_schema": {"name": "answer", "schema": STRICT, "strict": True}}
LOOSELY = {"type": "json_schema", "json_schema": {"name": "answer", "schema": OPEN, "strict": False}}
OF_ANTHROPIC = {"format": {"type": "json_schema", "schema": STRICT}}


def told(options: Mapping[str, Any], request: Request) -> tuple[str, dict[str, Any]]:
    """The text of an answer, and what the request said about its form."""

    async def run() -> tuple[str, dict[str, Any]]:
        async with ModelServer([ANSWER]) as server:
            model = connect({**options, "base_url": server.url}, lambda name: "k")
            text = "".join([delta.text async for delta in model(request) if isinstance(delta, TextDelta)])
            await model.aclose()
            body = server.requests[0].body
            return text, {name: body[name] for name in ("response_format", "output_config") if name in body}

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-4o", {"response_format": OF_OPENAI}),
        ("ollama", "llama3.2", {"response_format": OF_OPENAI}),
        ("openai", "gpt-4-turbo", {"response_format": JSON_MODE}),
        ("deepseek", "deepseek-chat", {"response_format": JSON_MODE}),
        ("anthropic", "claude-sonnet-4-6", {"output_config": OF_ANTHROPIC}),
        ("anthropic", "claude-3-haiku", {}),
    ],
)
def test_the_same_answer_comes_by_schema_mode_and_plain_text(
    provider: str, model: str, expected: dict[str, Any]
) -> None:
    """Provider and model get the strongest form they know; the text of the answer does not depend on it."""
    assert told({"provider": provider, "model": model}, REQUEST) == (ANSWER, expected)


@pytest.mark.parametrize(
    ("provider", "schema", "expected"),
    [
        ("openai", OPEN, {"response_format": LOOSELY}),
        ("openai", LIST, {"response_format": JSON_MODE}),
        ("openai", None, {"response_format": JSON_MODE}),
        ("anthropic", OPEN, {}),
        ("anthropic", LIST, {}),
        ("anthropic", None, {}),
    ],
)
def test_a_schema_a_provider_would_refuse_is_not_sent(
    provider: str, schema: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    """Answers that are no object, and at Anthropic schemas that leave something open, go the weaker way."""
    assert told({"provider": provider}, replace(REQUEST, schema=schema))[1] == expected


def test_a_schema_asks_for_json_by_itself() -> None:
    """Whoever gives a schema need not say `json` as well."""
    assert told({"provider": "deepseek"}, replace(REQUEST, json=False))[1] == {"response_format": JSON_MODE}


def test_a_plain_request_says_nothing_about_form() -> None:
    """Text stays text."""
    assert told({"provider": "openai"}, replace(REQUEST, json=False, schema=None))[1] == {}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRICT, True),
        (LIST, True),
        (OPEN, False),
        ({"enum": ["a", "b"]}, True),
        ({}, False),
        ({"type": "array"}, False),
        ({"type": "object"}, False),
        ({**STRICT, "required": ["intent"]}, False),
        ({**STRICT, "additionalProperties": True}, False),
        ({**STRICT, "$defs": {"anything": {}}}, False),
        ({"type": "array", "items": {"anyOf": [TEXT, {"type": "object"}]}}, False),
    ],
)
def test_which_schemas_can_be_kept_to_the_letter(schema: dict[str, Any], expected: bool) -> None:
    """Only those that leave nothing open at any depth."""
    assert is_strict(schema) is expected
