"""What models that call tools are told of their answers, on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.llm.wire import Answer
from tests.pictures import RED
from tests.playbook.conversations import END, PROGRAM, skill, told
from tests.playbook.playing import Player, act
from tests.playbook.transports import MODELS, Said, talk

PROVIDERS = pytest.mark.parametrize("provider", list(MODELS))
IN_TEXT = "Go on from here with JSON"
BY_CALLS = "Go on from here by calling tools"


def sent(body: Any) -> str:
    """The conversation as it went out."""
    return json.dumps(body.get("messages", body.get("input")), ensure_ascii=False)


@pytest.mark.sampled(4)
@PROVIDERS
@pytest.mark.parametrize(
    "first", [Said([told("a"), told("a long text")], cut=6), 'I wonder: {"a": 1} or {"b": 2}.'], ids=["cut", "words"]
)
def test_models_that_call_tools_are_told_to_call_them(play: Player, provider: str, first: Any) -> None:
    """Nobody has them write JSON; in text that is what they are told, and what is journaled says that."""
    _, by_calls, _ = talk(play, PROGRAM, [first, [END]], (provider, "tools"))
    played, in_text, _ = talk(play, PROGRAM, [first, [END]], (provider, "text"))

    assert (BY_CALLS in sent(by_calls[1].body), IN_TEXT in sent(by_calls[1].body)) == (True, False)
    assert (BY_CALLS in sent(in_text[1].body), IN_TEXT in sent(in_text[1].body)) == (False, True)
    assert (None, True) == (played.error, IN_TEXT in played.feedback[1])


@PROVIDERS
def test_images_stand_in_their_results(play: Player, provider: str) -> None:
    """Where a result may hold them; else they follow the results, and are sent once in any case."""
    played, asked, _ = talk(
        play, PROGRAM, [[skill("look"), skill("forecast", city="Rome")], [END]], (provider, "tools")
    )
    conversation = asked[1].body.get("messages") or asked[1].body["input"]
    results = [each for each in conversation if each.get("role") == "tool" or "output" in each]
    results += [block for each in conversation for block in each.get("content") or () if "tool_use_id" in block]

    assert None is played.error
    assert 1 == sent(asked[1].body).count(RED.data)
    assert 2 == len(results)
    assert [provider != "openai", False] == [RED.data in json.dumps(result) for result in results]
    assert ("Images in these results:" in sent(asked[1].body)) == (provider == "openai")


def test_numbers_beyond_those_of_javascript_are_told_exactly(play: Player) -> None:
    """In payloads, state, results and texts: an identifier that is rounded names another thing."""
    id = 725653563933458433
    source = """
role Worker { can execute }
skill Store { export function newest(n) { return { order: n } } }
agent Main : Worker {
  uses skill Store
  state { last: null }
  on go(args) { playbook "Look at {{args.id}}." }
}
"""
    look = act("call_skill", skill="Store", function="newest", input={"n": id}, id="a")
    said = [
        look,
        act("update_state", updates={"last": "${a.output.order}"}),
        act("print", message="${a.output.order}"),
        act("print", message="It is ${a.output.order}."),
    ]

    played = play(source, [{"batch": said}, act("return", data="${a.output}")], payload={"id": id})

    assert ({"order": id}, [str(id), f"It is {id}."]) == (played.result, [*played.printed])
    assert (0, 4) == tuple(said.count(str(id)) for said in played.feedback)
    assert str(id) in played.requests[0].messages[0].text
    assert "725653563933458400" not in "".join(played.feedback)


def test_they_are_exact_in_the_registry_and_for_another_model(play: Player) -> None:
    """What is kept and got again, and what `call_llm` is given, has all digits."""
    id = 725653563933458433
    source = """
role Clerk { can registry }
agent Main : Clerk { on go(args) { playbook "Keep {{args.id}}, and look again." } }
"""
    said = [
        act("registry_set", key="k", value={"id": "${args.id}"}),
        {**act("registry_get", key="k"), "id": "r"},
        act("call_llm", data="${r.output}", instruction="Say it."),
    ]
    played = play(source, [{"batch": said}, "It is there.", act("return", data="${r.output}")], payload={"id": id})

    assert f'"id": {id}' in json.dumps(played.result)
    assert [True] * 2 == [str(id) in text for text in (str(played.requests[1].messages), played.feedback[-1])]


def test_code_that_rounds_them_is_told_once(play: Player) -> None:
    """Computing with one, and writing it into a text, is as in JavaScript; handing it on is not."""
    source = """
role Clerk { can execute }
agent Main : Clerk {
  on pass(args: Json) { return { id: args.id, same: args.id === args.other, list: [args.id] } }
  on round(args: Json) { return [args.id + 1, `${args.id}`, args.id - 1, args.id * 2, "a" + args.id] }
}
"""
    id = 725653563933458433
    (passed,) = play.each(source, [], [("Main.pass", {"id": id, "other": id})])
    (rounded,) = play.each(source, [], [("Main.round", {"id": id})])

    assert {"id": id, "same": True, "list": [id]} == passed.result
    assert "725653563933458400" == rounded.result[1]
    assert [] == [*passed.logged]
    assert [f"`{id}` is beyond 2 ** 53"] == [line.split(",")[0] for line in rounded.logged]


@pytest.mark.parametrize(
    "way",
    [
        "JSON.stringify(args)",
        "args.id.toString()",
        "args.id.toFixed(0)",
        "args.id.toLocaleString()",
        "[args.id].join()",
        "console.log(args.id)",
        "console.log([{ id: args.id }])",
        "console.table([args])",
        "console.log('%d', args.id)",
        "args.id.toPrecision(20)",
        "args.id.toString(36)",
        "args.id.toExponential()",
        "encodeURIComponent(args.id)",
        "new Intl.NumberFormat().format(args.id)",
        "({ [args.id]: 1 })",
        "new URLSearchParams(args).toString()",
    ],
)
def test_every_way_out_tells_that_a_number_is_rounded(play: Player, way: str) -> None:
    """What is printed, or leaves as a text, is no longer the number that came."""
    id = 725653563933458433
    source = f"role Clerk {{ can execute }}\nagent Main : Clerk {{ on go(args: Json) {{ return {way} }} }}"
    (played,) = play.each(source, [], [("Main.go", {"id": id})])

    assert [f"`{id}` is beyond 2 ** 53"] == [line.split(",")[0] for line in played.logged]


@PROVIDERS
@pytest.mark.parametrize("transport", ["text", "tools"])
def test_an_answer_that_is_cut_at_its_limit_says_so(play: Player, provider: str, transport: str) -> None:
    """The model is told to write less at a time, and the person of `max_tokens`, not of another model."""
    begun = '{"message":"a long'
    written = {"pieces": (begun.replace("{", '{"intent":"print",'),)} if transport == "text" else {}
    called = {"calls": (("print", (begun,)),)} if transport == "tools" else {}
    cut = Answer(**written, **called, stop_reason="max_tokens" if provider == "anthropic" else "length")

    played, asked, _ = talk(play, PROGRAM, [cut] * 5, (provider, transport))

    assert "the answer reached its limit of tokens, `max_tokens`, in the middle of" in sent(asked[1].body)
    assert "write less at a time" in sent(asked[1].body)
    assert (2, True) == (len(asked), "Raise `max_tokens` of the agent" in played.told), played.told
    assert "-m" not in played.told
