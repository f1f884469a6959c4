"""Answers in one document, from servers that do not stream, and those that arrive within an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.llm.messages import Delta, StreamEnd, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.stream_state import calls_in
from koi_lang.llm.tools import NativeTool, ToolOffer, ToolSet
from tests.llm.refusals import error
from tests.llm.server import Answer
from tests.llm.test_adapters import BOTH, REQUEST, answer_to, failure_of
from tests.llm.test_downgrades import asked

ACTION = '{"intent":"look","a":"b"}'
LOOK = NativeTool("look", "Look.", {"type": "object"}, '{"intent":"look"')
OFFERING = replace(REQUEST, offer=ToolOffer("Call tools.", ToolSet((LOOK,))))


def completion(message: Mapping[str, Any], reason: str | None = "stop", **about: Any) -> dict[str, Any]:
    """A chat completion as OpenAI's reference of the interface shows it."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": reason}
    usage = {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | about


def message(*content: Mapping[str, Any], reason: str = "end_turn", **about: Any) -> dict[str, Any]:
    """A message as Anthropic's reference of the interface shows it."""
    usage = {"input_tokens": 19, "output_tokens": 10}
    told = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [*content]}
    return {**told, "stop_reason": reason, "stop_sequence": None, "usage": usage} | about


TEXT = {"type": "text", "text": "ok"}
COUNTED = Usage(19, 10)
# By interface and what is special: the document, and what is made of it.
DOCUMENTS: dict[str, tuple[str, Any, list[Delta]]] = {
    "openai": ("openai", completion({"content": "ok"}), [TextDelta("ok"), StreamEnd(COUNTED, "stop")]),
    "openai without a reason": (
        "openai",
        completion({"content": "ok"}, None, usage=None),
        [TextDelta("ok"), StreamEnd(None, "stop")],
    ),
    "openai cut": ("openai", completion({"content": "o"}, "length"), [TextDelta("o"), StreamEnd(COUNTED, "length")]),
    "deepseek": (
        "openai",
        completion({"reasoning_content": "hm", "content": "ok"}),
        [ThinkingDelta("hm"), TextDelta("ok"), StreamEnd(COUNTED, "stop")],
    ),
    "mistral": (
        "openai",
        completion({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, TEXT]}),
        [ThinkingDelta("hm"), TextDelta("ok"), StreamEnd(COUNTED, "stop")],
    ),
    "a list of parts": (
        "openai",
        completion({"content": [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]}),
        [TextDelta("ok"), StreamEnd(COUNTED, "stop")],
    ),
    "text completion": (
        "openai",
        {"object": "text_completion", "choices": [{"text": "ok", "finish_reason": "stop"}]},
        [TextDelta("ok"), StreamEnd(None, "stop")],
    ),
    "anthropic": ("anthropic", message(TEXT), [TextDelta("ok"), StreamEnd(COUNTED, "end_turn")]),
    "anthropic in blocks": (
        "anthropic",
        message({"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "o"}, TEXT),
        [ThinkingDelta("hm"), TextDelta("o"), TextDelta("ok"), StreamEnd(COUNTED, "end_turn")],
    ),
    "anthropic as text": ("anthropic", message(content="ok"), [TextDelta("ok"), StreamEnd(COUNTED, "end_turn")]),
    "anthropic cut": (
        "anthropic",
        message(TEXT, reason="max_tokens"),
        [TextDelta("ok"), StreamEnd(COUNTED, "max_tokens")],
    ),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_an_answer_that_is_not_streamed_is_read(case: str) -> None:
    """Text, thoughts, what it took, and why the model stopped."""
    kind, document, expected = DOCUMENTS[case]

    assert expected == answer_to(kind, Answer(document=document))


@BOTH
def test_calls_of_tools_that_are_not_streamed_are_read(kind: str) -> None:
    """They become the actions that they stand for."""
    function = {"name": "look", "arguments": '{"a": "b"}'}
    calls = [{"id": id, "type": "function", "function": function} for id in ("1", "2")]
    blocks = [{"type": "tool_use", "id": id, "name": "look", "input": {"a": "b"}} for id in ("1", "2")]
    documents = {
        "openai": completion({"content": None, "tool_calls": calls}, "tool_calls"),
        "anthropic": message(*blocks, reason="tool_use"),
    }

    deltas = answers(kind, Answer(document=documents[kind]))

    assert ACTION * 2 == "".join(each.text for each in deltas if isinstance(each, TextDelta)).replace(" ", "")


def answers(kind: str, *given: Answer) -> list[Delta]:
    """The deltas of a request that offers a tool."""
    return answer_to(kind, *given, request=OFFERING, transport="tools")


@BOTH
def test_a_stream_that_is_called_json_is_read_as_what_it_is(kind: str) -> None:
    """Proxies mix up their headers."""
    deltas = answer_to(kind, Answer(pieces=("o", "k"), kind="application/json"))

    assert [TextDelta("o"), TextDelta("k")] == deltas[:2]


@pytest.mark.parametrize(
    ("kind", "document", "told"),
    [
        ("openai", error("slow down", code=429), "`openai` asks to slow down: slow down"),
        ("openai", error("no such field: 'seed'", code=400), "`openai` rejects the request: no such field: 'seed'"),
        (
            "openai",
            {"object": "error", "message": "down", "code": 503},
            "`openai` has a problem of its own (status 503)",
        ),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": ""}},
            "`anthropic` is overloa",
        ),
        ("openai", [], "`openai` sent no answer"),
        ("openai", {}, "`openai` sent no answer"),
        ("openai", {"choices": [{"message": {"content": 3}}]}, "`openai` sent an answer that is not well formed"),
        ("anthropic", {"content": 3}, "`anthropic` sent no answer"),
        ("anthropic", {"content": [3, None, {"type": "text", "text": {}}]}, "`anthropic` sent an answer that is not w"),
    ],
)
def test_a_document_that_is_no_answer_is_told(kind: str, document: Any, told: str) -> None:
    """An error in a response of status 200, or anything else."""
    assert failure_of(kind, Answer(document=document)).message.startswith(told)


@pytest.mark.parametrize("text", ['{"choices": [', "[" * 100_000])
def test_a_document_that_is_not_well_formed_is_told(text: str) -> None:
    """However it is broken."""
    given = Answer(pieces=(), raw=text, kind="application/json")

    assert "sent an answer that is not well formed" in failure_of("openai", given).message


def test_a_stream_of_deep_json_is_told() -> None:
    """As any that cannot be read."""
    failure = failure_of("openai", Answer(pieces=(), raw=f"data: {'[' * 100_000}\n\n"))

    assert "sent an answer that is not well formed" in failure.message


def test_a_refused_stream_is_asked_for_in_one_piece() -> None:
    """The request without it is answered by a document."""
    refusal = error("Your organization must be verified to stream this model.", param="stream")
    given = [Answer(status=400, error=refusal), Answer(document=completion({"content": "ok"}))]

    requests, notes, failures = asked(given, times=2)

    assert [True, False, False] == [each.body["stream"] for each in requests]
    assert (["`some-model` cannot stream, so its answers come in one piece"], []) == (notes, failures)


# ---------------------------------------------------------------- failed generations

FAILED = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."


def failed(generation: str, status: int = 400, code: str = "tool_use_failed") -> Answer:
    """What Groq answers where it cannot make a call, or JSON, of what a model wrote."""
    return Answer(status=status, error=error(FAILED, code=code, failed_generation=generation))


@pytest.mark.parametrize(
    ("generation", "text"),
    [
        (ACTION, ACTION),
        ("```\n" + ACTION + "\n```", "```\n" + ACTION + "\n```"),
        ('<function=look>{"a":"b"}</function>', ACTION),
        ('<function=look={"a":"b"}</function>', ACTION),
        ('<function/look>{"a":"b"}</function>', ACTION),
        ('look{"a":"b"}</function>', ACTION),
        ('<function=look>{"a":"b"}</function>\n<function=look>{"a":"b"}</function>', ACTION * 2),
        ('<function=zap>{"a":"b"}</function>', '{"intent":"zap","a":"b"}'),
        ("I would rather look{", "I would rather look{"),
    ],
)
def test_what_a_model_wrote_is_its_answer(generation: str, text: str) -> None:
    """Calls in the words of open models are calls; the rest is for the reader of actions. Nobody counted it."""
    deltas = answers("openai", failed(generation), Answer(pieces=("never",)))

    assert text == "".join(each.text for each in deltas if isinstance(each, TextDelta))
    assert StreamEnd(None, "failed_generation", thoughts=None) == deltas[-1]


def test_an_answer_within_an_error_of_a_stream_is_read() -> None:
    """It stands in an event; what the model thought before stays."""
    event = f"data: {json.dumps(error(FAILED, failed_generation=ACTION))}\n\n"

    deltas = answer_to("openai", Answer(pieces=(), thoughts=("hm",), raw=event))

    assert [ThinkingDelta("hm"), TextDelta(ACTION), StreamEnd(None, "failed_generation")] == deltas


def test_an_answer_is_not_said_twice() -> None:
    """What was handed out already is a part of what the error holds."""
    event = f"data: {json.dumps(error(FAILED, failed_generation=ACTION))}\n\n"

    assert "`openai` broke off its answer: Failed to call" in failure_of("openai", Answer(raw=event)).message


def test_a_call_that_cannot_be_read_is_asked_for_again() -> None:
    """Tools are not refused by that: the next answer is offered them, and so is a playbook's last attempt."""
    said = "tool call validation failed: parameters for tool look did not match schema"
    answer = Answer(status=400, error=error(said, code="tool_use_failed"))

    requests, notes, failures = asked([answer, "ok"], transport="tools", request=OFFERING)
    again, _, told = asked([answer], transport="tools", request=OFFERING)

    assert ([True, True], [], []) == (["tools" in each.body for each in requests], notes, failures)
    assert (3, [f"`openai` cannot read what the model wrote: {said} (3 attempts) [3]"]) == (len(again), told)


def test_nothing_written_is_a_refusal() -> None:
    """An empty text is no answer; JSON that could not be made is asked for without its form."""
    requests, notes, _ = asked([failed("", code="json_validate_failed"), "ok"])

    assert (2, 1) == (len(requests), len(notes))


@pytest.mark.parametrize(
    "text", ["", "{}", "look", "look{", "look{}x", "<function=look>", "<function=look>[1]", "[" * 9999]
)
def test_what_is_no_call_is_none(text: str) -> None:
    """A name and an object, and nothing else."""
    assert [] == calls_in(text)


def test_deep_arguments_are_no_call() -> None:
    """They cannot be read."""
    assert [] == calls_in("look" + '{"a":' * 100_000)
