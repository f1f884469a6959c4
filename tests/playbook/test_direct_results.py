"""Calls that can do nothing but return: what their model is asked for, what it answers, and when that is given up."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.llm.messages import Delta, Request, StreamEnd, TextDelta
from koi_lang.llm.stream_state import ENDLESS
from tests.llm.server import Answer
from tests.playbook.playing import Player, Voice, act, as_pieces
from tests.playbook.test_result_types import MISFITS
from tests.playbook.transports import talk

TYPED = """
role Worker { can execute, can delegate }
/** What a review found. */
type Finding = { line: int, text: string, severity: "blocker" | "note", fix?: string }
agent Helper : Worker { on help(args) { return 1 } }
team Crew { helper: Helper }
skill Marks { export function mark() { return 1 } }
agent Main : Worker {
  MORE
  on go(args: { text: string }): RESULT { playbook "PLAYBOOK" }
}
"""
FINDINGS = '{ verdict: "pass" | "change", findings: Finding[] }'
GOOD = {"verdict": "pass", "findings": []}


def typed(
    result: str = "{ mood: string }", playbook: str = "What is the mood of {{args.text}}?", more: str = ""
) -> str:
    """A program whose only playbook declares a result."""
    return TYPED.replace("MORE", more).replace("RESULT", result).replace("PLAYBOOK", playbook)


def is_direct(play: Player, program: str) -> bool:
    """Whether the first request asks for the result alone."""
    played = play(program, [act("return", data={"mood": "good"})], payload={"text": "a"})
    return played.requests[0].system.startswith("Do what you are asked.")


COMMENTED = """{
    /** What it is about,
     *  in a few words. */
    title: string,
    // from 0 to 1
    score?: number,
    kind: "bug" | "wish", // which of the two
    tags: string[], /* lower case */
    at: Finding, // where
    plain: boolean
  }"""


def test_comments_of_fields_are_told(play: Player) -> None:
    """Above a field or behind it; in the form that models read, and in the schema that they are held to."""
    (request,) = play(typed(COMMENTED), [{}], payload={"text": "a"}).requests[:1]
    assert request.schema is not None
    fields = request.schema["properties"]

    assert {"title": "What it is about, in a few words.", "score": "from 0 to 1"}.items() <= {
        name: field.get("description") for name, field in fields.items()
    }.items()
    assert ["which of the two", "lower case"] == [fields[name]["description"] for name in ("kind", "tags")]
    assert "description" not in fields["plain"]
    assert '{"title":"<text: What it is about, in a few words.>","score"?:<number: from 0 to 1>' in request.system
    assert '"kind":"bug" | "wish" (which of the two),"tags":["<text>", …] (lower case)' in request.system


BOUNDED = """{
    score: number in 0..1, // how sure
    name: string in 1..8 matching /^[a-z]+$/,
    tags: (string in 2..)[] in 1..2
  }"""


def test_bounds_of_types_are_told(play: Player) -> None:
    """They stand in the form that models read and in the schema, and an answer beyond them is no result."""
    good = {"score": 0.5, "name": "ab", "tags": ["cd"]}
    played = play(typed(BOUNDED), [{**good, "name": "Ab", "tags": []}, good], payload={"text": "a"})
    fields = (played.requests[0].schema or {})["properties"]

    assert good == played.result
    assert '"score":<number: how sure, from 0 to 1>,"name":"<text: 1 to 8 characters, matching /^[a-z]+$/>"' in (
        played.requests[0].system
    )
    assert '"tags":["<text: at least 2 characters>", …] (1 to 2 items)' in played.requests[0].system
    assert '{"pattern": "^[a-z]+$", "minLength": 1, "maxLength": 8}' == fields["name"]["description"]
    assert {"minimum": 0, "maximum": 1}.items() <= fields["score"].items()
    assert {"minItems": 1, "maxItems": 2}.items() <= fields["tags"].items()
    assert (1, 8, 2) == (fields["name"]["minLength"], fields["name"]["maxLength"], fields["tags"]["items"]["minLength"])
    wrong = played.requests[1].messages[-1].text
    assert '`name` must be a text of 1 to 8 characters matching /^[a-z]+$/, not "Ab"' in wrong
    assert "`tags` must be a list of 1 to 2 items, not []" in wrong


def test_the_comment_of_a_type_is_told(play: Player) -> None:
    """Of the result itself, and of a type within it: once, behind the form."""
    program = typed("Report", more="", playbook="Look at {{args.text}}.").replace(
        "agent Helper", "// What the editor reads.\ntype Report = { worst: Finding }\nagent Helper"
    )
    system = play(program, [{}], payload={"text": "a"}).requests[0].system

    assert system.partition('"fix"?:"')[0].count("What") == 0
    assert '"fix"?:"<text>"} (What a review found.)} (What the editor reads.)\n' in system


def test_the_request_has_the_form_the_playbook_and_the_values(play: Player) -> None:
    """No action is explained; the answer is the result."""
    played = play(typed(), [{"mood": "good"}], payload={"text": "I like it"})
    (request,) = played.requests

    assert {"mood": "good"} == played.result
    assert 'of this form: {"mood":"<text>"}\n' in request.system
    assert "intent" not in request.system
    assert "What is the mood of ⟨args.text⟩?" == request.messages[-1].text
    assert '{"args":{"text":"I like it"}' in request.messages[0].text
    assert {"mood": {"type": "string"}} == (request.schema or {}).get("properties")


@pytest.mark.parametrize(
    ("result", "answer", "expected"),
    [
        ("number", {"result": 3}, 3),
        ("string", {"result": "a"}, "a"),
        ("string", "Just words.", "Just words."),
        ("string[]", ["a", "b"], ["a", "b"]),
        ("boolean", {"result": True}, True),
        ('"red" | "green"', {"result": "red"}, "red"),
        ("{ type: string, actions: string[] }", {"type": "a", "actions": ["b"]}, {"type": "a", "actions": ["b"]}),
        ("{ mood: string, note?: string }", {"mood": "a", "note": None}, {"mood": "a"}),
    ],
)
def test_results_of_every_kind(result: str, answer: Any, expected: Any, play: Player) -> None:
    """What is no object travels in one; fields may be called like words of the protocol."""
    played = play(typed(result), [answer], payload={"text": "a"})

    assert (None, expected, 1) == (played.error, played.result, len(played.requests))


@pytest.mark.parametrize(
    "text",
    [
        'Sure:\n```json\n{"mood": "good"}\n```',
        '<think>{"mood": 1}</think>{"mood": "good"}',
        '"{\\"mood\\":\\"good\\"}"',
        '[{"intent": "return", "data": {"mood": "good"}}]',
    ],
)
def test_an_answer_may_have_words_around_it(text: str, play: Player) -> None:
    """Fences, thoughts and JSON within JSON mean nothing."""
    assert {"mood": "good"} == play(typed(), [text], payload={"text": "a"}).result


@pytest.mark.parametrize(("result", "told"), MISFITS.values(), ids=MISFITS)
def test_a_misfit_is_told_once_with_the_form(result: Any, told: str, play: Player) -> None:
    """The second answer counts."""
    played = play(typed(FINDINGS), [json.dumps(result), GOOD], payload={"text": "a"})

    assert GOOD == played.result
    assert told in played.requests[1].messages[-1].text or "is not JSON" in played.requests[1].messages[-1].text
    assert (
        'of this form: {"verdict":"pass" | "change","findings":[{"line":<integer>'
        in played.requests[1].messages[-1].text
    )


@pytest.mark.parametrize("wrong", ["I do not know.", {"mod": "a"}, {"mood": 1}, ""])
def test_after_two_misfits_comes_the_protocol(wrong: Any, play: Player) -> None:
    """With the rules of actions; a third one ends the call as it always did."""
    played = play(typed(), [wrong, wrong, act("return", data={"mood": "a"})], payload={"text": "a"})

    assert {"mood": "a"} == played.result
    assert [False, False, True] == ["You are the agent" in request.system for request in played.requests]


def test_actions_are_carried_out_all_the_same(play: Player) -> None:
    """What is offered is no permission: a model that writes an action has it done as its role allows."""
    played = play(typed(), [act("print", message="hi"), {"mood": "a"}], payload={"text": "a"})

    assert (("hi",), {"mood": "a"}) == (played.printed, played.result)


@pytest.mark.parametrize(
    "more",
    ["uses team Crew", "uses skill Marks", "state { n: number = 1 }", "uses instructions"],
)
def test_what_can_be_used_needs_the_protocol(more: str, play: Player) -> None:
    """Members, skills, a state and files of the project."""
    assert not is_direct(play, typed(more=more))


@pytest.mark.parametrize(
    ("playbook", "expected"),
    [
        ("Decide whether {{args.text}} is positive.", True),
        ("Write a line about {{args.text}}. Do not ask the user anything.", True),
        ("Greet them, then return the mood.", False),
        ("Ask the person for the mood and return it.", False),
        ("Run the tests and return the mood.", False),
        ("Look it up in notes.txt.", False),
        ("If it is empty, ask for it. Return the mood.", False),
        ("Call `prompt_user` and return the mood.", False),
    ],
)
def test_a_sentence_that_asks_for_an_action_needs_the_protocol(playbook: str, expected: bool, play: Player) -> None:
    """By the rules of `koi check` for prose."""
    assert expected == is_direct(play, typed(playbook=playbook))


# ---------------------------------------------------------------- text at the end


PLAIN = """
role Worker { can execute }
agent Main : Worker { on go(args) TYPE { playbook "PLAYBOOK" } }
"""


def ended(play: Player, turns: list[Any], way: tuple[str, str], type: str = "", playbook: str = "Do it.") -> Any:
    """What comes of a call whose model is offered its actions in some way."""
    return talk(play, PLAIN.replace("TYPE", type).replace("PLAYBOOK", playbook), turns, way)


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("before", [[], [[act("print", message="hi")]]], ids=["at once", "after an action"])
def test_text_without_calls_ends_a_playbook(provider: str, before: list[Any], play: Player) -> None:
    """A model that was offered tools and writes to the person is done; in text it is told what to write."""
    turns = [*before, "Hello!"]
    played, asked, _ = ended(play, turns, (provider, "tools"))
    again, told, _ = ended(play, [*before, "Hello!", [act("return", data={})]], (provider, "text"))

    assert ("Hello!", len(turns)) == (played.result, len(asked))
    assert ({}, len(turns) + 1) == (again.result, len(told))


def test_text_of_another_type_is_corrected_once(play: Player) -> None:
    """With the form; JSON of the type is the result, and the same mistake twice ends the call."""
    way, type, playbook = ("openai", "tools"), ": { n: number }", "Print it, then return the number."
    right = ended(play, [Answer(pieces=('{"n": 3}',))], way, type, playbook)
    wrong = ended(play, [Answer(pieces=("It is 3.",))] * 9, way, type, playbook)

    assert ({"n": 3}, 1) == (right.played.result, len(right.asked))
    assert (True, 2) == ("with the same mistake" in wrong.played.told, len(wrong.asked))
    assert 'call `return` with {\\"data\\":{\\"n\\":<number>}}' in json.dumps(wrong.asked[1].body, ensure_ascii=False)


# ---------------------------------------------------------------- handlers that only answer


ANSWER = """
role Worker { can execute, can delegate }
agent Helper : Worker { on help(args) { return 1 } }
team Crew { helper: Helper }
agent Main : Worker {
  uses team Crew
  state { n: number = 1 }
  on go(args: { text: string }) TYPE { answer "What is the mood of {{args.text}}?" }
}
"""


def test_a_handler_that_only_answers_never_acts(play: Player) -> None:
    """Whatever its role permits and its agent has: an action that its model writes is no result."""
    typed_answer = ANSWER.replace("TYPE", ": { mood: string }")
    played = play(typed_answer, [act("print", message="hi"), {"mood": "good"}], payload={"text": "a"})

    assert ((), {"mood": "good"}) == (played.printed, played.result)
    assert ["Do what you are asked."] * 2 == [request.system[:22] for request in played.requests]


def test_an_answer_without_a_type_is_a_text(play: Player) -> None:
    """The words of the model, without thoughts; JSON is a text, too."""
    texts = ['<think>hm</think>{"intent":"print"}', act("return", data="Good."), {"result": "Good."}]
    played = [play(ANSWER.replace("TYPE", ""), [text], payload={"text": "a"}) for text in texts]

    assert ['{"intent":"print"}', "Good.", "Good."] == [each.result for each in played]
    assert not played[0].requests[0].json


@pytest.mark.parametrize(
    ("type", "form", "answer", "expected"),
    [
        (': "good" | "bad"', '{"result":"good" | "bad"}', act("return", data="good"), "good"),
        (": int", '{"result":<integer>}', {"result": 3}, 3),
        (": { n: int }[]", '{"result":[{"n":<integer>}, …]}', [{"n": 1}], [{"n": 1}]),
    ],
)
def test_the_form_is_that_of_the_schema(type: str, form: str, answer: Any, expected: Any, play: Player) -> None:
    """What is no object stands under `result` in both; a `return` as it is written elsewhere is read, too."""
    played = play(ANSWER.replace("TYPE", type), [answer], payload={"text": "a"})

    assert f"of this form: {form}\n" in played.requests[0].system
    assert expected == played.result


def test_two_answers_that_are_no_result_end_the_call(play: Player) -> None:
    """There is no protocol to fall back to."""
    played = play(ANSWER.replace("TYPE", ": { mood: string }"), ["Good."] * 9, payload={"text": "a"})

    assert 2 == len(played.requests)
    assert "gave up after 2 answers that are no result; the last: the answer is not JSON: 'Good.'" in played.told


def test_answer_is_a_name_elsewhere(play: Player) -> None:
    """Programs use it for variables and fields."""
    source = """
role Worker { can execute }
agent Main : Worker {
  on go(args) {
    const answer = { answer: "a" }
    let other = answer
    answer.answer += "b"
    return [answer.answer, other["answer"], answer ? 1 : 2]
  }
}
"""
    assert ["ab", "ab", 1] == play(source, []).result


class Endless(Voice):
    """A model whose first answer repeats itself until its stream is closed."""

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the next answer."""
        self.requests.append(request)
        is_first = len(self.requests) == 1
        yield TextDelta("so good " * 40 if is_first else '{"mood":"good"}')
        yield StreamEnd(None, ENDLESS if is_first else "stop")


@pytest.mark.parametrize("type", ["", ": { mood: string }"])
def test_an_answer_that_repeats_itself_is_no_result(type: str, play: Player) -> None:
    """It is not taken for a text; the model is told why, and its next answer counts."""
    model = Endless(lambda request: as_pieces(""))
    played = play(ANSWER.replace("TYPE", type), model, payload={"text": "a"})

    assert ({"mood": "good"} if type else '{"mood":"good"}') == played.result
    assert "repeated itself" in played.requests[1].messages[-1].text
