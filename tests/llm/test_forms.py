"""How providers are told that the answer is JSON: by a schema, as a mode, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import RequestError
from koi_lang.llm.connect import connect
from koi_lang.llm.json_schemas import COMPACT, is_strict
from koi_lang.llm.messages import Message, Request, TextDelta
from tests.llm.server import Answer, Asked, ModelServer

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
        ("openai", OPEN, {"response_format": JSON_MODE}),
        ("ollama", OPEN, {"response_format": JSON_MODE}),
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
    """Answers that are no object, and schemas that leave something open, go the weaker way."""
    assert told({"provider": provider}, replace(REQUEST, schema=schema))[1] == expected


def test_a_schema_asks_for_json_by_itself() -> None:
    """Whoever gives a schema need not say `json` as well."""
    assert told({"provider": "deepseek"}, replace(REQUEST, json=False))[1] == {"response_format": JSON_MODE}


RANGE, LENGTHS, ITEMS = {"minimum": 0, "maximum": 1}, {"minLength": 1, "maxLength": 80}, {"minItems": 1, "maxItems": 5}


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("openai", RANGE | ITEMS),
        ("local", RANGE | LENGTHS | ITEMS),
        ("ollama", RANGE | LENGTHS | ITEMS),
        ("anthropic", {}),
        ("gemini", {}),
    ],
)
def test_a_provider_is_sent_the_bounds_that_it_takes(provider: str, words: Mapping[str, int]) -> None:
    """A field that has the name of a bound is a field, and no grammar gets long repetitions or endless blanks."""

    def bounded(words: Mapping[str, int]) -> dict[str, Any]:
        fields = {
            "score": {"type": "number", **RANGE},
            "minLength": {"type": "string", **LENGTHS},
            "tags": {"type": "array", "items": {"type": "string", **LENGTHS, "maxLength": 5000}, **ITEMS},
        }
        kept = {
            name: {key: value for key, value in field.items() if key in ("type", "items") or key in words}
            for name, field in fields.items()
        }
        kept["tags"]["items"] = TEXT | ({"minLength": 1} if "minLength" in words else {})
        return {"type": "object", "properties": kept, "required": [*kept], "additionalProperties": False}

    whole = bounded(RANGE | LENGTHS | ITEMS)
    whole["properties"]["tags"]["items"] = {**TEXT, **LENGTHS, "maxLength": 5000}
    form = told({"provider": provider, "model": "" if provider != "local" else "m"}, replace(REQUEST, schema=whole))[1]

    sent = form["output_config"]["format"] if provider == "anthropic" else form["response_format"]["json_schema"]
    assert sent["schema"] == bounded(words) | (COMPACT if provider == "local" else {})


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
        ({"type": ["string", "null"]}, True),
        ({"type": ["object", "null"]}, False),
        ({"type": ["array", "null"]}, False),
        ({"type": "array", "items": TEXT, "prefixItems": [{}]}, False),
        ({**TEXT, "allOf": [{}]}, False),
        ({**STRICT, "patternProperties": {"^x": {}}}, False),
        ({"$ref": "#/$defs/text", "$defs": {"text": TEXT}}, True),
        ({"$ref": "#/$defs/text"}, False),
        ({"$ref": "other.json"}, False),
    ],
)
def test_which_schemas_can_be_kept_to_the_letter(schema: dict[str, Any], expected: bool) -> None:
    """Only those that leave nothing open at any depth."""
    assert is_strict(schema) is expected


# ---------------------------------------------------------------- forms that are refused

# What providers and local servers say, word for word or nearly so.
REFUSALS = [
    (400, {"error": {"message": "Invalid parameter", "type": "invalid_request_error", "param": "response_format"}}),
    (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}),
    (400, {"error": {"message": "Prompt must contain the word 'json' in some form to use 'json_object'."}}),
    (400, {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}),
    (400, {"error": {"message": "Invalid JSON schema: unsupported keyword", "type": "BadRequestError"}}),
    (422, {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}),
    (500, {"error": {"message": "failed to parse grammar"}}),
]
OTHERS = [
    (400, {"error": {"message": "Unsupported value: 'logprobs'", "param": "logprobs"}}),
    (401, {"error": {"message": "no key for response_format"}}),
    (400, {}),
]
PLAIN = replace(REQUEST, json=False, schema=None)


def forms_of(*answers: Answer | str, times: int = 1, provider: str = "openai", request: Request = REQUEST) -> list[Any]:
    """The forms that were asked for in all requests, made one after the other; failures end with their sentence."""

    async def run() -> list[Any]:
        async with ModelServer(answers) as server:
            model = connect({"provider": provider, "base_url": server.url}, lambda name: "k")
            failures = []
            for _ in range(times):
                try:
                    _ = [delta async for delta in model(request)]
                except RequestError as error:
                    failures.append(error.message)
            await model.aclose()
            asked = [asked.body.get("response_format", asked.body.get("output_config")) for asked in server.requests]
            return [*asked, *failures]

    return asyncio.run(run())


@pytest.mark.parametrize(("status", "error"), REFUSALS)
def test_a_form_that_is_refused_is_left_out(status: int, error: Any) -> None:
    """The request is made once more without it, and from then on it is not asked for."""
    weaker = JSON_MODE if "schema" in str(error) or "grammar" in str(error) else None

    assert [OF_OPENAI, *[weaker] * 3] == forms_of(Answer(status=status, error=error), ANSWER, times=3)


def test_a_mode_that_is_refused_after_a_schema_is_left_out() -> None:
    """Servers that know of neither are asked three times, once."""
    first = Answer(status=400, error={"error": {"message": "json_schema is not supported"}})
    second = Answer(status=400, error={"error": "'response_format.type' must be 'json_schema' or 'text'"})

    assert [OF_OPENAI, JSON_MODE, None, None] == forms_of(first, second, ANSWER, times=2)


def test_a_form_refused_inside_of_a_stream_is_left_out() -> None:
    """Routers begin to answer before the provider behind them has said anything."""
    error = {"code": 400, "message": "Provider returned error", "metadata": {"raw": "json_object is not supported"}}
    refusal = Answer(pieces=(), raw=f": PROCESSING\n\ndata: {json.dumps({'error': error})}\n\n")

    assert [JSON_MODE, None] == forms_of(refusal, ANSWER, request=replace(REQUEST, schema=None))


def test_anthropic_may_refuse_a_form() -> None:
    """It calls it otherwise."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "output_config: Extra inputs"}}
    forms = forms_of(Answer(status=400, error=error), ANSWER, times=2, provider="anthropic")

    assert [OF_ANTHROPIC, None, None] == forms


@pytest.mark.parametrize(("status", "error"), OTHERS)
def test_what_is_refused_for_another_reason_is_asked_once(status: int, error: Any) -> None:
    """Nothing else about a request is changed behind anybody's back."""
    assert [OF_OPENAI] == forms_of(Answer(status=status, error=error), ANSWER)[:-1]


def test_a_request_without_a_form_is_asked_once() -> None:
    """There is nothing to leave out."""
    refusal = Answer(status=400, error=REFUSALS[0][1])

    assert [None, "`openai` rejects the request: Invalid parameter"] == forms_of(refusal, ANSWER, request=PLAIN)


def test_a_second_refusal_is_told() -> None:
    """A request that is refused without a form, too, ends with what was said last, and nothing is remembered."""
    second = Answer(status=400, error={"error": {"message": "no such parameter"}})
    forms = forms_of(Answer(status=400, error=REFUSALS[0][1]), second, ANSWER, times=2)

    told = "`openai` rejects the request: no such parameter (also after a change of the form of the answer)"
    assert [OF_OPENAI, None, OF_OPENAI, told] == forms


def test_what_is_refused_is_not_remembered_for_others() -> None:
    """Two models that share nothing find it out for themselves, also where they have the same address."""

    async def run() -> list[Any]:
        async with ModelServer([Answer(status=400, error=REFUSALS[0][1]), ANSWER]) as server:
            for _ in range(2):
                model = connect({"provider": "openai", "base_url": server.url}, lambda name: "k")
                _ = [delta async for delta in model(REQUEST)]
                await model.aclose()
            return [asked.body.get("response_format") for asked in server.requests]

    assert [OF_OPENAI, None, OF_OPENAI] == asyncio.run(run())


class Refusing(ModelServer):
    """Refuses every request that asks for a form."""

    async def _answer(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        refusal = Answer(status=400, error=REFUSALS[0][1])
        await super()._answer(asked, refusal if "response_format" in asked.body else answer, writer)


def test_many_at_once_find_out_for_themselves() -> None:
    """Forty requests under way at the same time are each made again at most once; the next one is made once."""

    async def run() -> tuple[list[str], list[int]]:
        async with Refusing([ANSWER]) as server:
            model = connect({"provider": "openai", "base_url": server.url}, lambda name: "k")

            async def text() -> str:
                return "".join([delta.text async for delta in model(REQUEST) if isinstance(delta, TextDelta)])

            texts = [*await asyncio.gather(*(text() for _ in range(40)))]
            counts = [len(server.requests)]
            texts.append(await text())
            await model.aclose()
            return texts, [*counts, len(server.requests) - counts[0]]

    texts, (first, later) = asyncio.run(run())

    assert [ANSWER] * 41 == texts
    assert first <= 80
    assert 1 == later
