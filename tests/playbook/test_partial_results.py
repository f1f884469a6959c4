"""Results of declared types while a model writes them."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from koi_lang.events import Event, PartialResult
from koi_lang.llm.messages import Request
from koi_lang.runtime.context import current_run
from koi_lang.runtime.playbook.json_repair import parse_beginning
from koi_lang.runtime.playbook.written_texts import WrittenResult
from tests.playbook.playing import Player, Voice

PROGRAM = """
role Worker { can execute }
type Ticket = { title: string, tags: string[], steps: { text: string, minutes: int }[] }
agent Main : Worker {
  on answer(args: Json): Ticket { answer "Make a ticket." }
  on act(args: Json): Ticket { playbook "Print something, and make a ticket." }
  on list(args: Json): string[] { answer "List some." }
  on guarded(args: Json): Ticket { guard output { return true } answer "Make a ticket." }
  on untyped(args: Json) { playbook "Make a ticket." }
}
"""
TICKET = {
    "title": 'A "good" title of a ticket, é and 🦎',
    "tags": ["one", "two"],
    "steps": [{"text": "Look at it closely", "minutes": 15}, {"text": "Mend it", "minutes": 130}],
}


def grown(play: Player, event: str, answer: str, size: int = 5) -> tuple[list[Any], Any]:
    """The parts that somebody who looks on is told, and the result."""
    seen: list[Event] = []
    texts = {"untyped": json.dumps({"intent": "return", "data": TICKET})}

    async def speak(request: Request) -> AsyncIterator[str]:
        current_run().events.subscribe(seen.append, transient=True)
        text = texts.get(request.task.event if request.task is not None else "", answer)
        for start in range(0, len(text), size):
            yield text[start : start + size]

    played = play.each(PROGRAM, Voice(speak), [("Main.untyped", {}), (f"Main.{event}", {})])[1]
    return [each.data.value for each in seen if isinstance(each.data, PartialResult)], played.result


def is_part(part: Any, whole: Any) -> bool:
    """Whether a value is the beginning of another one."""
    match part, whole:
        case str(), str():
            return whole.startswith(part)
        case dict(), dict():
            return all(name in whole and is_part(part[name], whole[name]) for name in part)
        case list(), list():
            return len(part) <= len(whole) and all(map(is_part, part, whole))
    return part is whole or (type(part) is type(whole) and part == whole)


@pytest.mark.parametrize("ending", ["", " and so on"])
def test_every_beginning_is_a_part(ending: str) -> None:
    """Whatever has arrived, numbers are whole, and texts may go on."""
    text = json.dumps({**TICKET, "more": [[], {}, -1.5e3, True, None, "\\ \u2028"]}, indent=2)
    parts = [parse_beginning((text + ending)[:end]) for end in range(len(text + ending) + 1)]

    assert all(is_part(part, parts[-1]) for part in parts if part is not None)
    assert parts[-1] == json.loads(text)
    assert sum(part is None for part in parts) < 40


def test_what_is_no_json_has_no_part() -> None:
    """Nothing is raised, whatever a model writes."""
    signs = '{}[]",:\\ua1- \ntruefalse'
    chance = random.Random(1)
    for _ in range(3000):
        parse_beginning("".join(chance.choices(signs, k=chance.randrange(40))))

    assert [None, None, {}] == [parse_beginning(text) for text in ("", "no", '{"a')]


@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_a_result_without_an_action_grows(fence: str, play: Player) -> None:
    """In a playbook that may act, too, an object with the fields of the type is the result."""
    parts, result = grown(play, "act", f"{fence}{json.dumps(TICKET)}\n{fence[:3]}")

    assert TICKET == result
    assert len(parts) > 4
    assert all(is_part(part, TICKET) for part in parts)


@pytest.mark.parametrize("event", ["answer", "act"])
def test_an_object_grows(event: str, play: Player) -> None:
    """By itself, and in the action that returns it; the last part is nearly all of it."""
    action = json.dumps({"intent": "return", "data": TICKET}, ensure_ascii=False)
    parts, result = grown(play, event, action if event == "act" else json.dumps(TICKET))

    assert TICKET == result
    assert len(parts) > 4
    assert all(is_part(part, TICKET) for part in parts)
    assert all(is_part(part, later) for part, later in pairwise(parts))
    assert "steps" in parts[-1]


def test_a_list_grows(play: Player) -> None:
    """What no object is comes in one, of which nobody is told."""
    words = [f"word {number}" for number in range(20)]
    parts, result = grown(play, "list", json.dumps({"result": words}))

    assert words == result
    assert (True, True) == (len(parts) > 3, all(is_part(part, words) for part in parts))


@pytest.mark.parametrize("event", ["guarded", "untyped"])
def test_others_do_not_grow(event: str, play: Player) -> None:
    """A guard looks at the result first; and what has no type may be anything."""
    assert ([], TICKET) == grown(play, event, json.dumps(TICKET))


def test_thoughts_are_no_result() -> None:
    """What stands between their tags is not the answer."""
    told: list[Any] = []
    result = WrittenResult(lambda part: told.append(part.value), is_alone=True)
    for piece in ("<think>{'a': ", '{"title": "no"}}', "</think>", '{"title": "y', 'es, that is the one", "n": 1}'):
        result.add(piece)

    assert [{"title": "y"}] == told[:1]
    assert all("no" not in str(part) for part in told)


def test_long_results_are_not_told_too_often() -> None:
    """All parts together are some twenty times as long as the result at most."""
    told: list[Any] = []
    result = WrittenResult(lambda part: told.append(part.value), is_alone=True)
    text = json.dumps({"text": "word " * 20_000})
    for start in range(0, len(text), 4):
        result.add(text[start : start + 4])

    assert sum(len(part["text"]) for part in told) < 25 * len(text)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"intent": "return", "data": TICKET}, TICKET),
        ({"actionType": "direct", "intent": "return", "data": TICKET}, TICKET),
        ({"data": TICKET, "intent": "return"}, TICKET),
    ],
)
def test_a_result_in_an_action_grows_without_it(answer: Any, result: Any, play: Player) -> None:
    """Where a model is asked for the result alone and answers with the action, its parts are those of the result."""
    parts, given = grown(play, "answer", json.dumps(answer))

    assert result == given
    assert all(is_part(part, result) for part in parts)
    assert bool(parts) == (next(iter(answer)) != "data")


def test_a_field_may_be_called_like_one_of_an_action() -> None:
    """What the type names is part of the result."""
    told: list[Any] = []
    WrittenResult(lambda part: told.append(part.value), is_alone=True, protocol={"batch"}).add(
        '{"intent": "buy", "n": 1}'
    )

    assert [{"intent": "buy", "n": 1}] == told
