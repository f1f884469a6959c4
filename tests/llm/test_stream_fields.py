"""Parts of streams that are not as they should be: read as far as they can be, else one clear failure."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import RequestError
from koi_lang.llm.messages import Delta, StreamEnd, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.stream_fields import text_of
from koi_lang.llm.stream_state import ENDLESS, shorten_runaway
from koi_lang.llm.tools import NativeTool, ToolOffer, ToolSet
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


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": "three"}, {"prompt_tokens": -3, "completion_tokens": 2}, 5])
def test_a_count_that_cannot_be_read_is_none(usage: Any) -> None:
    """The answer is kept, and what it took is estimated; an answer that nothing was counted of is not free."""
    document = {**CHUNK, "usage": usage}
    deltas = answer_to("openai", Answer(pieces=(), raw=f"data: {json.dumps(document)}\n\ndata: [DONE]\n\n"))

    assert [TextDelta("ok"), StreamEnd(None, "stop")] == deltas


TOOLS = tuple(NativeTool(name, "", {}, json.dumps({"intent": name})[:-1]) for name in ("look", "look_up"))
OFFERING = replace(REQUEST, offer=ToolOffer("Call tools.", ToolSet(TOOLS)))
LOOKED = '{"intent":"look","a":1}'


def called(arguments: Any, **about: Any) -> dict[str, Any]:
    """A piece of a call; a name goes into its function."""
    function = {"name": about.pop("name")} if "name" in about else {}
    return {**about, "function": {**function, "arguments": arguments}}


# Calls in pieces as some servers send them, and the text of the actions that they stand for.
PIECES: dict[str, tuple[list[Any], str]] = {
    "an object": ([called({"a": 1}, index=0, name="look")], LOOKED),
    "an object after an empty text": ([called("", index=0, name="look"), called({"a": 1}, index=0)], LOOKED),
    "JSON in JSON": ([called('"{\\"a\\":1}"', index=0, name="look")], LOOKED),
    "a list": ([called([1], index=0, name="look")], '{"intent":"look","data":[1]}'),
    "null": ([called(None, index=0, name="look")], '{"intent":"look"}'),
    "without a list": ({"function": {"name": "look", "arguments": {"a": 1}}}, LOOKED),  # type: ignore[dict-item]
    "without a function": ([{"index": 0, "name": "look", "arguments": {"a": 1}}], LOOKED),
    "an id alone": ([called("", index=0, id="x", name="look"), called('{"a":1}', id="x")], LOOKED),
    "neither id nor index": ([called("", index=0, id="x", name="look"), called('{"a":1}')], LOOKED),
    "ids that take turns": (
        [called("", id=id, name="look") for id in "xy"] + [called('{"a":1}', id=id) for id in "yx"],
        LOOKED * 2,
    ),
    "ids that take turns at one index": (
        [called("", index=0, id=id, name="look") for id in "xy"] + [called('{"a":1}', index=0, id=id) for id in "yx"],
        LOOKED * 2,
    ),
    "one id for all": ([called('{"a":1}', index=index, id="x", name="look") for index in (0, 1)], LOOKED * 2),
    "an index as a text": ([called("", index="0", name="look"), called('{"a":1}', index=0)], LOOKED),
    "an index that is none": ([called("", index=[0], name="look"), called('{"a":1}', index=[0])], LOOKED),
    "a name in two pieces": (
        [called("", index=0, name=name) for name in ("lo", "ok")] + [called("{}", index=0)],
        '{"intent":"look"}',
    ),
    "a name that goes on": (
        [called("", index=0, name=name) for name in ("look", "_up")] + [called("{}", index=0)],
        '{"intent":"look_up"}',
    ),
    "a name that grows": (
        [called("", index=0, name=name) for name in ("lo", "look")] + [called("{}", index=0)],
        '{"intent":"look"}',
    ),
    "a name with each piece": ([called(piece, index=0, name="look") for piece in ("", '{"a":', "1}")], LOOKED),
    "a name after its id": ([called("", index=0, id="x"), called('{"a":1}', index=0, name="look")], LOOKED),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PIECES)
def test_a_call_is_read_however_its_pieces_come(name: str) -> None:
    """What was no text was dropped, and the action carried out with its defaults."""
    calls, expected = PIECES[name]
    deltas = [{"tool_calls": calls}] if isinstance(calls, dict) else [{"tool_calls": [call]} for call in calls]

    assert expected == spoken(deltas)


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a":1}'])
def test_the_call_of_an_older_interface_is_read(arguments: Any) -> None:
    """It has neither a list nor an index."""
    call = {"name": "look", "arguments": arguments}

    assert [LOOKED] * 2 == [spoken([{"function_call": call}]), spoken({"function_call": call})]


def block(content: Any, *deltas: Any, index: Any = 0, stop: bool = True) -> list[dict[str, Any]]:
    """The events of a block of Anthropic's interface, which may begin with anything of it."""
    begun = {"type": "content_block_start", "index": index, "content_block": content}
    pieces = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [begun, *pieces, {"type": "content_block_stop", "index": index}][: None if stop else -1]


def piece(arguments: Any) -> dict[str, Any]:
    """A piece of the arguments of a call."""
    return {"type": "input_json_delta", "partial_json": arguments}


USE = {"type": "tool_use", "id": "x", "name": "look", "input": {"a": 1}}
# Blocks as some servers send them, and the text that they stand for.
BLOCKS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "whole": (block(USE), LOOKED),
    "whole, with an empty piece": (block(USE, piece("")), LOOKED),
    "whole, with pieces": (block(USE | {"input": {"a": 2}}, piece('{"a":'), piece("1}")), LOOKED),
    "whole, without an end": (block(USE, stop=False), LOOKED),
    "whole, without an index": ([*block(USE, index=None), *block(USE, index=None)], LOOKED * 2),
    "whole, at one index": ([*block(USE), *block(USE)], LOOKED * 2),
    "a text of JSON": (block(USE | {"input": '{"a":1}'}), LOOKED),
    "a piece that is an object": (block(USE | {"input": {}}, piece({"a": 1})), LOOKED),
    "an index that is none": (block(USE, index=[0]), LOOKED),
    "no arguments": (block(USE | {"input": None}), '{"intent":"look"}'),
    "text": (block({"type": "text", "text": "a"}, {"type": "text_delta", "text": "b"}), "ab"),
    "text alone": ([*block({"type": "text", "text": "a"}), *block({"type": "text", "text": "b"}, index=1)], "ab"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_read_from_its_first_event(name: str) -> None:
    """What stands there already was dropped, and the action carried out with its defaults."""
    blocks, expected = BLOCKS[name]
    events = [MESSAGE[0], *blocks, *MESSAGE[3:]]
    raw = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    deltas = answer_to("anthropic", Answer(pieces=(), raw=raw), request=OFFERING, transport="tools")

    assert expected == "".join([each.text for each in deltas if isinstance(each, TextDelta)]).replace(" ", "")


def test_thoughts_in_the_first_event_are_shown() -> None:
    """As those that follow."""
    blocks = block({"type": "thinking", "thinking": "h"}, {"type": "thinking_delta", "thinking": "m"})
    events = [MESSAGE[0], *blocks, *MESSAGE[1:]]
    raw = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    assert [ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("ok")] == answer_to("anthropic", Answer(raw=raw))[1:4]


def test_a_choice_whose_index_is_a_text_is_the_answer() -> None:
    """Only one that stands beside it is not."""
    chunk = {"choices": [{"index": "0", "delta": {"content": "ok"}, "finish_reason": "stop"}]}

    deltas = answer_to("openai", Answer(pieces=(), raw=f"data: {json.dumps(chunk)}\n\n"))

    assert [TextDelta("ok"), StreamEnd(None, "stop")] == deltas


def spoken(said: Any) -> str:
    """The text of an answer that comes as some deltas of a message, or as a whole one."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in said]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
    raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    document = {"choices": [{"message": said, "finish_reason": "tool_calls"}]}
    answer = Answer(document=document) if isinstance(said, dict) else Answer(pieces=(), raw=raw)
    deltas = answer_to("openai", answer, request=OFFERING, transport="tools")
    return "".join([delta.text for delta in deltas if isinstance(delta, TextDelta)]).replace(" ", "")


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


# How an answer begins, what follows, and whether that runs away: of an unknown model, then of one that is known.
ENDLESS_ANSWERS: dict[str, tuple[str, list[str], bool, bool]] = {
    "blanks behind it": ('{"intent":"a"}', ["\n "] * 900, True, True),
    "blanks between tokens": ('{"intent":"a \\" b",', ["  "] * 900, True, True),
    "a number": ('{"id":1', ["0"] * 3000, True, False),
    "texts of a list": ('{"options":[', ['"grandpa",'] * 400, True, False),
    "the same action": ('{"a":1}', ['.return {"data":{"name":"Maria","age":34}}'] * 100, True, False),
    "a short piece of a text": ('{"intent":"a', ["-+"] * 4000, True, False),
    "blanks before anything": ("", [" "] * 900, True, True),
    "some blanks behind it": ('{"intent":"a"}', ["\n" * 190], False, False),
    "lines of a table in a text": ('{"message":"a\\n', ["-" * 900, "\\n", "=" * 900, "\\n"], False, False),
    "blanks in a text": ('{"message":"a', [" "] * 3000, False, False),
    "a table of zeros": ('{"rows":[', ["[0,0,0,0,0,0,0,0],"] * 40, False, False),
    "rows that differ": ('{"rows":[', [f"[0,0,{n}]," for n in range(2000)], False, False),
    "10,000 dashes of a known model": ('{"message":"', ["-" * 100] * 100, True, False),
}


@pytest.mark.parametrize("model", ["some-model", "gpt-4o-mini"])
@pytest.mark.parametrize("name", ENDLESS_ANSWERS)
def test_an_answer_that_runs_away_is_not_read_to_its_end(model: str, name: str) -> None:
    """It is paid for by the token, up to the end of the window; a long text that somebody wants is read."""
    begin, pieces, *endless = ENDLESS_ANSWERS[name]
    is_endless = endless[model == "gpt-4o-mini"]

    *deltas, end = answer_to("openai", Answer(pieces=(begin, *pieces, "end")), request=replace(REQUEST, model=model))
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))

    assert isinstance(end, StreamEnd)
    assert (is_endless, is_endless) == (end.stop_reason == ENDLESS, not text.endswith("end"))
    assert not is_endless or len(text) < 5000


@pytest.mark.parametrize("name", [name for name, (_, _, *endless) in ENDLESS_ANSWERS.items() if any(endless)])
def test_an_answer_that_ran_away_is_shortened(name: str) -> None:
    """Its beginning stays, with some of what it repeats; a mark says how much is missing."""
    begin, pieces, *_ = ENDLESS_ANSWERS[name]
    answer = begin + "".join(pieces)[:4300]

    kept, _, mark = shorten_runaway(answer).partition("… (")

    assert (len(kept) < 200, answer.startswith(kept), kept.startswith(begin)) == (True, True, True)
    assert f"{len(answer) - len(kept):,} more characters of the same)" == mark


@pytest.mark.parametrize("name", ["some blanks behind it", "rows that differ", "lines of a table in a text"])
def test_an_answer_that_did_not_run_away_stays(name: str) -> None:
    """What differs, or ends soon, is no repetition."""
    begin, pieces, *_ = ENDLESS_ANSWERS[name]
    answer = begin + "".join(pieces) + "end"

    assert answer == shorten_runaway(answer)


@ALL
def test_every_adapter_closes_an_answer_that_runs_away(kind: str) -> None:
    """Whatever its events look like; what it took is reckoned, and no more than was asked for."""
    answer = Answer(pieces=('{"intent":"a"}', *["\n "] * 900), usage=None)

    *_, end = answer_to(kind, answer, request=replace(REQUEST, max_tokens=70))

    assert isinstance(end, StreamEnd)
    assert ENDLESS == end.stop_reason
    assert end.usage is not None
    assert (True, True) == (end.usage.estimated or kind == "anthropic", end.usage.output_tokens <= 70)


def test_plain_texts_end_only_where_they_repeat_themselves() -> None:
    """White space means something there, and nothing but an unknown model is cut short."""
    plain = replace(REQUEST, json=False)
    stops = {
        text: answer_to("openai", Answer(pieces=("a", *[text] * 500, "b")), request=plain)[-1]
        for text in ("\n", "a line\n", "all work and no play\n")
    }

    assert [False, False, True] == [isinstance(end, StreamEnd) and end.stop_reason == ENDLESS for end in stops.values()]
