"""Parts of streams that are not as they should be: read as far as they can be, else one clear failure."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from koi_lang.errors import RequestError
from koi_lang.llm.messages import Delta, StreamEnd, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.stream_fields import text_of
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import ALL, REQUEST, adapter, answer_to, failure_of
from tests.llm.wire import call
from tests.llm.wire_responses import events_of

THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": '{"intent":"shell"}'}]}
REFERENCE = {"type": "reference", "reference_ids": [1]}
ODD = (None, 5, "x", [], {}, [{"type": "text", "text": None}])
CHUNK = {
    "choices": [{"index": 0, "delta": {"content": "ok", "refusal": None}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
}
MESSAGE = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
RESPONSE = [*events_of(Answer(pieces=("ok",))), *events_of(Answer(calls=(call("look", n=1),)))][3:]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        ("a", "a"),
        ([], ""),
        (["a", "b"], "ab"),
        ([{"type": "text", "text": "a"}, THOUGHT, REFERENCE, {"type": "text", "text": "b"}], "ab"),
        ([{"text": "a"}, {"type": "output_text", "text": "b"}, {"type": "text", "text": None}, None], "ab"),
        ([{"type": "text", "text": [{"type": "text", "text": "a"}]}], "a"),
    ],
)
def test_content_is_a_text_or_parts_of_one(content: Any, expected: str) -> None:
    """Parts are joined; what a model thinks, and what is no text, is left out."""
    assert expected == text_of(content)


def test_an_answer_of_parts_is_read() -> None:
    """Models that think send their content as a list of parts, which ended in a TypeError."""
    text = [{"type": "text", "text": '{"intent":"a"}'}]
    deltas = answer_to("openai", Answer(pieces=([THOUGHT], text)))

    assert [ThinkingDelta('{"intent":"shell"}'), TextDelta('{"intent":"a"}')] == deltas[:2]
    assert 3 == len(deltas)


@pytest.mark.parametrize("thinking", [None, 5, {"text": 5}, [5, None, {"type": "text", "text": {}}]])
def test_a_thought_that_cannot_be_read_costs_no_answer(thinking: Any) -> None:
    """It is only shown, so it is left out."""
    parts = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "ok"}]

    assert TextDelta("ok") == answer_to("openai", Answer(pieces=(parts,)))[0]


@pytest.mark.parametrize("content", [5, {"text": "a"}, [{"type": "text", "text": 5}]])
def test_content_that_is_neither_is_told(content: Any) -> None:
    """Text may be lost, so the answer does not count."""
    failure = failure_of("openai", Answer(pieces=(content,)))

    assert ("`openai` sent an answer that is not well formed", True) == (failure.message, failure.repeatable)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": "3"}, {"prompt_tokens": -3, "completion_tokens": 2}, 5])
def test_a_count_that_cannot_be_read_is_none(usage: Any) -> None:
    """The answer is kept, and what it took is estimated; an answer that nothing was counted of is not free."""
    document = {**CHUNK, "usage": usage}
    deltas = answer_to("openai", Answer(pieces=(), raw=f"data: {json.dumps(document)}\n\ndata: [DONE]\n\n"))

    assert [TextDelta("ok"), StreamEnd(None, "stop")] == deltas


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document, the whole of it included."""
    yield place
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*place, key))


def with_odd(document: Any, place: tuple[Any, ...], odd: Any) -> Any:
    """A document with something else in one place."""
    if not place:
        return odd
    changed = copy.copy(document)
    changed[place[0]] = with_odd(changed[place[0]], place[1:], odd)
    return changed


def changes(where: Iterable[tuple[Any, ...]], every: bool) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places with what is to stand there."""
    for number, place in enumerate(where):
        yield from ((place, odd) for odd in (ODD if every else ODD[number % 3 :: 3]))


def streams(kind: str, every: bool) -> list[str]:
    """A stream with something odd in each place of it: everything that is odd, or every third of it in turn."""
    if kind == "openai":
        chunks = [with_odd(CHUNK, place, odd) for place, odd in changes(places(CHUNK), every)]
        return [f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n" for chunk in chunks]
    whole = MESSAGE if kind == "anthropic" else RESPONSE
    events = [with_odd(whole, place, odd) for place, odd in changes(filter(None, places(whole)), every)]
    names = [event["type"] for event in whole]
    return [
        "".join(f"event: {name}\ndata: {json.dumps(event)}\n\n" for name, event in zip(names, each, strict=True))
        for each in events
    ]


async def outcomes(kind: str, every: bool) -> list[list[Delta] | RequestError]:
    """What comes of each of those streams."""
    found: list[list[Delta] | RequestError] = []
    raw = streams(kind, every)
    async with ModelServer([Answer(pieces=(), raw=each) for each in raw]) as server:
        model = adapter(kind, server.url)
        for _ in raw:
            try:
                found.append([delta async for delta in model(REQUEST)])
            except RequestError as error:
                found.append(error)
        await model.aclose()
    return found


def is_sound(deltas: list[Delta]) -> bool:
    """Whether an answer holds nothing but texts and numbers."""
    *texts, end = deltas
    assert isinstance(end, StreamEnd)
    usage = end.usage or Usage(0, 0)
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.stored_tokens)
    whole = all(type(number) is int and number >= 0 for number in numbers) and isinstance(end.stop_reason, str)
    return whole and all(isinstance(delta, TextDelta) and isinstance(delta.text, str) for delta in texts)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["third", "every"])
@ALL
def test_whatever_stands_in_a_stream_is_read_or_told(kind: str, every: bool) -> None:
    """Something odd in any place of a stream gives a sound answer, or a failure of the request, and no other error."""
    found = asyncio.run(outcomes(kind, every))
    answers = [each for each in found if isinstance(each, list)]

    assert all(map(is_sound, answers))
    assert len(answers) > len(found) / 2
