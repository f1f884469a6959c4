"""OpenAI's Responses interface, through the real SDK, against a server that sends what the SDK's types say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from koi_lang.errors import AnswerTooLongError, ContextOverflowError
from koi_lang.llm.images import Image
from koi_lang.llm.messages import Delta, Message, Request, StreamEnd, TextDelta, ThinkingDelta, Thoughts, Usage
from koi_lang.llm.tools import NativeTool, ToolCall, ToolOffer, ToolResult, ToolSet
from tests.limits import LIMIT_S
from tests.llm.refusals import REFUSALS
from tests.llm.server import Answer, Asked, ModelServer
from tests.llm.test_adapters import REQUEST, adapter, answer_to, failure_of
from tests.llm.test_forms import STRICT
from tests.llm.wire import call
from tests.llm.wire_responses import response_of

OPEN = {"type": "object", "properties": {"message": {}}}
PRINT = NativeTool("print", "Show a text.", OPEN, '{"intent":"print"')
RETURN = NativeTool("return", "End.", STRICT, '{"intent":"return"')
OFFER = ToolOffer("You call tools.", ToolSet((PRINT, RETURN)))
ASKING = Request("You write JSON.", (Message("user", "Begin."),), json=True, offer=OFFER)
ENDED = {"type": "response.completed", "response": {"output": []}}


def talk(*answers: Answer, request: Request = ASKING, **options: Any) -> tuple[list[Delta], list[Asked]]:
    """All deltas of one request of a model that is offered tools, and what the server received."""

    async def run() -> tuple[list[Delta], list[Asked]]:
        async with ModelServer(answers) as server:
            model = adapter("responses", server.url, **{"model": "gpt-5.4", "transport": "tools", **options})
            try:
                return [delta async for delta in model(request)], server.requests
            finally:
                await model.aclose()

    return asyncio.run(run())


def read(events: Sequence[Mapping[str, Any]]) -> tuple[str, StreamEnd]:
    """The text of an answer that comes as these events, and its end."""
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    *deltas, end = talk(Answer(pieces=(), raw=raw))[0]
    assert isinstance(end, StreamEnd)
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), end


def read_all(value: Any) -> Any:
    """Checked data as plain data; lists are checked when they are read."""
    if isinstance(value, dict):
        return {name: read_all(each) for name, each in value.items()}
    return value if isinstance(value, (str, int, float, type(None))) else [read_all(each) for each in value]


def item(index: Any, name: str = "print", arguments: Any = "", *, is_done: bool = False) -> dict[str, Any]:
    """The beginning, or the end, of a call."""
    about = {"type": "function_call", "id": "fc", "call_id": "c", "name": name, "arguments": arguments}
    return {"type": f"response.output_item.{'done' if is_done else 'added'}", "output_index": index, "item": about}


def piece(index: int, arguments: Any) -> dict[str, Any]:
    """A piece of the arguments of a call."""
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments}


def whole(index: int, arguments: Any) -> dict[str, Any]:
    """All arguments of a call."""
    return {"type": "response.function_call_arguments.done", "output_index": index, "arguments": arguments}


# ---------------------------------------------------------------- requests


def test_a_model_is_asked_in_text() -> None:
    """Nothing is to be stored; the word JSON stands in the items, and a reasoning model is sent no temperature."""
    request = replace(ASKING, temperature=0.5, max_tokens=90)

    _, (asked,) = talk(Answer(), request=request, transport="text", effort="low")

    assert asked.path == "/v1/responses"
    assert asked.body == {
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "system", "content": "You write JSON."}, {"role": "user", "content": "Begin."}],
        "max_output_tokens": 90,
        "model": "gpt-5.4",
        "reasoning": {"effort": "low", "summary": "auto"},
        "store": False,
        "stream": True,
        "text": {"format": {"type": "json_object"}},
    }


def test_a_model_that_does_not_think_is_not_asked_for_thoughts() -> None:
    """It would refuse the question, and takes a temperature; a closed schema is sent whole."""
    request = replace(REQUEST, temperature=0.5, schema=STRICT)

    _, (asked,) = talk(Answer(), request=request, model="gpt-4.1", top_p=0.9)

    assert {"input", "model", "store", "stream", "temperature", "text", "top_p"} == set(asked.body)
    assert asked.body["text"]["format"] == {"type": "json_schema", "name": "answer", "schema": STRICT, "strict": True}


def test_tools_say_whether_they_are_closed() -> None:
    """The interface closes those that do not; one of them must be called."""
    _, (asked,) = talk(Answer(calls=(call("print"),)))

    described = {"type": "function", "name": "print", "description": "Show a text.", "parameters": OPEN}
    assert [{**described, "strict": False}, True] == [asked.body["tools"][0], asked.body["tools"][1]["strict"]]
    assert ("required", "text" in asked.body) == (asked.body["tool_choice"], False)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("transport", ["text", "tools"])
@pytest.mark.parametrize("name", ["plain", "schema", "thoughts", "limits"])
def test_requests_are_what_the_sdk_allows(name: str, transport: str) -> None:
    """Every field and item has the shape that its types say."""
    requests = {
        "plain": ASKING,
        "schema": replace(ASKING, schema=STRICT),
        "thoughts": conversation(THOUGHT),
        "limits": replace(ASKING, max_tokens=9, temperature=0.5, cache_key="koi-1"),
    }

    (asked,) = talk(Answer(), request=requests[name], transport=transport, effort="high", top_p=0.5)[1]
    types = TypeAdapter(ResponseCreateParamsStreaming)

    assert asked.body == read_all(types.validate_python(asked.body))


def test_fields_of_the_person_stand_beside_ours() -> None:
    """Objects that both write are joined; what is ours alone stays."""
    extra = {"reasoning": {"effort": "xhigh"}, "text": {"verbosity": "low"}, "store": True, "service_tier": "flex"}

    _, (asked,) = talk(Answer(), request=REQUEST, extra_body=extra)

    assert asked.body["reasoning"] == {"summary": "auto", "effort": "xhigh"}
    assert asked.body["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert (False, "flex") == (asked.body["store"], asked.body["service_tier"])


THOUGHT = '{"calls": 1, "item": {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"}}'
CALLS = (ToolCall("print", '{"message":"a"}'), ToolCall("return", "{}"))
RESULTS = (ToolResult("1"), ToolResult("2", is_error=True))


def blocks_of(end: StreamEnd) -> tuple[str, ...]:
    """What the model thought, as it is kept."""
    assert end.thoughts is not None
    return end.thoughts.blocks


def conversation(*thoughts: str) -> Request:
    """A request whose answer before called tools, after what the model thought."""
    kept = Thoughts("gpt-5.4", thoughts) if thoughts else None
    answered = Message("assistant", "…", calls=CALLS, thoughts=kept)
    shown = Message("user", "Look.", (Image("image/png", "aWNo"),))
    return replace(ASKING, messages=(*ASKING.messages, answered, Message("user", "…", results=RESULTS), shown))


def test_thoughts_stand_before_the_calls_that_followed_them() -> None:
    """As they came; the results follow, then what the person shows."""
    _, (asked,) = talk(Answer(), request=conversation(THOUGHT))
    items = asked.body["input"][2:]

    assert items[1] == {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"}
    assert items[0] == {
        "type": "function_call",
        "call_id": "c00001000",
        "name": "print",
        "arguments": '{"message":"a"}',
    }
    assert items[3] == {"type": "function_call_output", "call_id": "c00001000", "output": "1"}
    image = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aWNo"}
    assert items[5] == {"role": "user", "content": [image, {"type": "input_text", "text": "Look."}]}


def test_thoughts_that_are_refused_are_left_out() -> None:
    """Another organization, or another model, cannot read them; the calls stay."""
    refused = Answer(status=400, error=REFUSALS["openai thoughts"][0])

    _, (first, second) = talk(refused, Answer(calls=(call("print"),)), request=conversation(THOUGHT))

    kept = [each for each in first.body["input"] if each.get("type") != "reasoning"]
    assert (len(first.body["input"]) - 1, kept, False) == (len(kept), second.body["input"], "include" in second.body)


@pytest.mark.parametrize("thoughts", [(), ('{"type": "thinking", "thinking": "…", "signature": "c"}',)])
def test_calls_of_which_no_thoughts_are_known_are_told_alone(thoughts: tuple[str, ...]) -> None:
    """After a resumed run, or where a model of another provider has called; the ids are none that OpenAI looks up."""
    _, (asked,) = talk(Answer(), request=conversation(*thoughts))
    kinds = [each.get("type", "message") for each in asked.body["input"]]

    assert ["message"] * 2 + ["function_call"] * 2 + ["function_call_output"] * 2 + ["message"] == kinds
    assert all("id" not in each for each in asked.body["input"])


# ---------------------------------------------------------------- answers


def test_thoughts_are_shown_kept_and_counted() -> None:
    """The summary as it comes; the encrypted item for the next request, with the calls that came before it."""
    answer = Answer(thoughts=("I ", "see."), signature="secret", calls=(call("print"),), thought_tokens=2)

    (first, second, text, end), _ = talk(answer)

    assert [ThinkingDelta("I "), ThinkingDelta("see."), TextDelta('{"intent":"print"}')] == [first, second, text]
    assert isinstance(end, StreamEnd)
    assert Usage(7, 3, 2, thinking_tokens=2) == end.usage
    (kept,) = map(json.loads, blocks_of(end))
    thought = kept["item"]
    assert (0, "secret", "I see.") == (kept["calls"], thought["encrypted_content"], thought["summary"][0]["text"])


def test_parts_of_a_summary_stand_apart() -> None:
    """Each has a heading of its own."""
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0, "part": {}}
    text = {"type": "response.reasoning_summary_text.delta", "output_index": 0}
    parts = [{**part, "summary_index": number} for number in range(2)]
    events = [parts[0], {**text, "delta": "a"}, parts[1], {**text, "delta": "b"}, ENDED]
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)

    deltas, _ = talk(Answer(pieces=(), raw=raw))

    assert ["a", "\n\n", "b"] == [delta.text for delta in deltas if isinstance(delta, ThinkingDelta)]


def test_reasoning_that_cannot_be_sent_back_is_not_kept() -> None:
    """Without its encrypted content OpenAI would look for it among what it has stored."""
    thought = {"type": "reasoning", "id": "r", "summary": []}
    done = {"type": "response.output_item.done", "output_index": 0, "item": thought}

    _, end = read([done, item(1), piece(1, "{}"), ENDED])

    assert () == blocks_of(end)


PRINTED = '{"intent":"print","message":"a"}'
A = '{"message":"a"}'
OBJECT: Any = {"message": "a"}
# Streams that no honest server sends, and the text that is read of them.
ODD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a call that never closes": ([item(0), piece(0, '{"message":"a'), ENDED], '{"intent":"print","message":"a'),
    "a call behind one that never closes": ([item(0), piece(0, "{"), item(1), piece(1, A), ENDED], '{"intent":"print"'),
    "pieces of nothing": ([piece(4, A), item(0), piece(0, A), piece(9, "}"), ENDED], PRINTED),
    "two calls at one index": ([item(0), piece(0, A), item(0), piece(0, A), ENDED], PRINTED * 2),
    "an end that differs": ([item(0), piece(0, A), whole(0, '{"message":"b"}'), ENDED], PRINTED),
    "an end alone": ([item(0), whole(0, A), ENDED], PRINTED),
    "a whole call": ([item(0, arguments=A, is_done=True), ENDED], PRINTED),
    "a whole call twice": ([item(0, arguments=A, is_done=True)] * 2 + [ENDED], PRINTED),
    "pieces after the end": ([item(0), piece(0, A), item(0, arguments=A, is_done=True), piece(0, A), ENDED], PRINTED),
    "arguments at the beginning, too": ([item(0, arguments=A), piece(0, A), ENDED], PRINTED),
    "unknown events": ([{"type": "response.dreaming", "output_index": []}, item(0), piece(0, A), ENDED], PRINTED),
    "no events at all": ([[], "x", None, item(0), piece(0, A), ENDED], PRINTED),  # type: ignore[list-item]
    "texts that are none": ([{"type": "response.refusal.delta", "delta": 3}, item(0), piece(0, A), ENDED], PRINTED),
    "arguments that are an object": ([item(0, arguments=OBJECT, is_done=True), ENDED], PRINTED),
    "all arguments that are an object": ([item(0), whole(0, OBJECT), ENDED], PRINTED),
    "a piece that is an object": ([item(0), piece(0, OBJECT), item(0, is_done=True), ENDED], PRINTED),
    "arguments at the beginning alone": ([item(0, arguments=A), ENDED], PRINTED),
    "an index that is a text": ([item("0"), piece(0, A), ENDED], PRINTED),
    "ids in place of indices": (
        [each | {"output_index": None, "item_id": "fc"} for each in (item(0), piece(0, A))] + [ENDED],
        PRINTED,
    ),
    "a text in the first event": (
        [
            {"type": "response.content_part.added", "part": {"type": "output_text", "text": "a"}},
            {"type": "response.output_text.delta", "delta": "b"},
            ENDED,
        ],
        "ab",
    ),
    "everything at the end": (
        [{"type": "response.completed", "response": {"output": [item(0, arguments=A)["item"]]}}],
        PRINTED,
    ),
    "everything again at the end": (
        [item(0), piece(0, A), {"type": "response.completed", "response": {"output": [item(0, arguments=A)["item"]]}}],
        PRINTED,
    ),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", ODD)
def test_odd_streams_are_read_once(name: str) -> None:
    """Nothing is carried out twice, or made of what belongs to nothing."""
    events, expected = ODD[name]

    assert expected == read(events)[0].replace('": "', '":"')


@pytest.mark.parametrize("index", ["x", -1, True, [0], 0.5])
def test_an_index_that_is_none_is_told(index: Any) -> None:
    """It is an answer that is not well formed, never a traceback."""
    raw = f"data: {json.dumps({**item(0), 'output_index': index})}\n\n"

    assert "`openai` sent an answer that is not well formed" == failure_of("responses", Answer(raw=raw)).message


def test_ten_thousand_calls_are_read_in_a_second() -> None:
    """Also where the first one never closes, so that all others wait for it."""
    events = [each for number in range(1, 10_000) for each in (item(number), piece(number, "{}"))]

    async def run() -> str:
        raw = "".join(f"data: {json.dumps(event)}\n\n" for event in [item(0), piece(0, "{"), *events, ENDED])
        async with ModelServer([Answer(pieces=(), raw=raw)]) as server:
            model = adapter("responses", server.url, model="gpt-5.4", transport="tools")
            deltas = [delta async for delta in model(ASKING)]
            await model.aclose()
            return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))

    assert '{"intent":"print"' == asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_forty_at_once_are_not_mixed_up() -> None:
    """One adapter reads forty streams, each for itself."""
    answers = [Answer(thoughts=(f"t{number}",), calls=(call("print", message=f"m{number}"),)) for number in range(40)]

    async def run() -> list[list[Delta]]:
        async with ModelServer(answers) as server:
            model = adapter("responses", server.url, model="gpt-5.4", transport="tools")

            async def ask() -> list[Delta]:
                return [delta async for delta in model(ASKING)]

            answered = await asyncio.gather(*(ask() for _ in range(40)))
            await model.aclose()
            return answered

    for thought, *texts, end in asyncio.run(run()):
        assert isinstance(thought, ThinkingDelta)
        assert isinstance(end, StreamEnd)
        text = "".join(delta.text for delta in texts if isinstance(delta, TextDelta))
        assert f'{{"intent":"print","message": "m{thought.text[1:]}"}}' == text
        assert f'"text": "{thought.text}"' in blocks_of(end)[0]


def test_a_refusal_is_told_once() -> None:
    """It comes in pieces and at the end of its item."""
    assert "the model at `openai` declined to answer: No." == failure_of("responses", Answer(refusal="No.")).message


def test_an_answer_in_one_document_is_read() -> None:
    """Older models do not stream."""
    answer = Answer(thoughts=("hm",), calls=(call("print", message="a"),))

    (thought, text, end), _ = talk(Answer(document=response_of(answer)))

    assert [ThinkingDelta("hm"), TextDelta('{"intent":"print","message": "a"}')] == [thought, text]
    assert isinstance(end, StreamEnd)
    assert ("completed", 1) == (end.stop_reason, len(blocks_of(end)))


# ---------------------------------------------------------------- failures


def failed(code: str, message: str) -> Answer:
    """An answer that fails after it has begun."""
    response = {"status": "failed", "error": {"code": code, "message": message}, "usage": None}
    return Answer(pieces=(), raw=f"data: {json.dumps({'type': 'response.failed', 'response': response})}\n\n")


@pytest.mark.parametrize(
    ("code", "message", "sentence", "is_repeatable"),
    [
        ("server_error", "boom", "`openai` has a problem of its own (status 500): boom", True),
        ("rate_limit_exceeded", "slow", "`openai` asks to slow down: slow", True),
        ("invalid_prompt", "no", "`openai` rejects the request: no", False),
        ("image_too_large", "big", "`openai` rejects the request: big", False),
        ("something_new", "hm", "`openai` broke off its answer: hm", True),
    ],
)
def test_a_response_that_fails_is_told(code: str, message: str, sentence: str, is_repeatable: bool) -> None:
    """Its code says whether the same request may be answered later."""
    failure = failure_of("responses", failed(code, message))

    assert (sentence, is_repeatable) == (failure.message, failure.repeatable)


def test_a_window_that_is_full_is_known() -> None:
    """The error comes within the stream."""
    said = "Your input exceeds the context window of this model."

    assert isinstance(failure_of("responses", failed("context_length_exceeded", said)), ContextOverflowError)


def test_an_answer_that_is_cut_short_says_so() -> None:
    """By its limit, or by a filter."""
    cut = answer_to("responses", Answer(pieces=("half",), stop_reason="length"))
    empty = failure_of("responses", Answer(pieces=(), thoughts=("hm",), stop_reason="length"))
    filtered = failure_of("responses", Answer(stop_reason="content_filter"))

    assert StreamEnd(Usage(7, 3, 2), "max_tokens") == cut[-1]
    assert isinstance(empty, AnswerTooLongError)
    assert ("the model at `openai` declined to answer", False) == (filtered.message, filtered.repeatable)
