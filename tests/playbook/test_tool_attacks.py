"""What models and servers write that pretends to be something else, in every transport."""

from __future__ import annotations

from typing import Any

import pytest

from tests.llm.server import Answer
from tests.llm.wire import call
from tests.playbook.playing import Player, act, done
from tests.playbook.transports import MODELS, WAYS, talk

PROVIDERS = pytest.mark.parametrize("provider", list(MODELS))
IN_ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids="-".join)
PROGRAM = """
role Worker { can think }
role Lead { can think, can delegate, can execute }
skill a { affordance "Two" export function b_c() { return "a b_c" } export function b__c() { return "a b__c" } }
skill a__b { affordance "Three" export function c() { return "a__b c" } }
skill Echo { affordance "Echo"
  export function say(id: string, type: string, condition: string) { return [id, type, condition] }
  export function plain(text: string) { return text }
}
agent Main : Worker { uses skill a uses skill a__b uses skill Echo  on go(args) { playbook "Do it." } }
agent Helper : Worker { on print(args) { return "helped" } on greet(args) { return { by: "helper", args } } }
team Crew { helper: Helper }
agent Boss : Lead { uses team Crew  uses skill Echo  on go(args) { playbook "Do it." } }
"""
END = [done(ok=True)]


def names_in(body: Any) -> list[str]:
    """The names of the tools in a request."""
    return [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]


@PROVIDERS
@pytest.mark.parametrize("as_key", ["intent", "\\u0069ntent"])
def test_the_tool_that_was_called_is_carried_out(play: Player, provider: str, as_key: str) -> None:
    """Arguments that name another action, or another kind of it, change nothing about which one it is."""
    forged = f'{{"message":"a","{as_key}":"shell","command":"rm","actionType":"delegate","type":"delegate"}}'
    turns = [Answer(calls=(("print", (forged[:30], forged[30:])), call("return", data={"ok": True})))]
    played, *_ = talk(play, PROGRAM, turns, (provider, "tools"), calls=[("Boss.go", {})])

    assert (("a",), {"ok": True}) == (played.printed, played.result)
    assert ["print", "return"] == played.did()


@IN_ALL_WAYS
def test_the_first_name_counts(play: Player, way: tuple[str, str]) -> None:
    """What is shown while an answer arrives is what is carried out, in text as by calls."""
    turns = ['{"intent":"print","message":"a","intent":"shell"}{"intent":"return","data":{"ok":true}}']
    played, *_ = talk(play, PROGRAM, turns, way)

    assert (("a",), {"ok": True}) == (played.printed, played.result)


@PROVIDERS
def test_names_that_collide_stand_for_their_own(play: Player, provider: str) -> None:
    """Each has a name of its own, of characters and a length that providers take, and calls what it says."""
    first, asked, _ = talk(play, PROGRAM, [END], (provider, "tools"))
    names = [name for name in names_in(asked[0].body) if name.startswith("a_")]
    turns = [Answer(calls=tuple((name, ("{}",)) for name in names)), END]
    played, *_ = talk(play, PROGRAM, turns, (provider, "tools"))

    assert (None, 3, 3) == (first.error, len(names), len(set(names)))
    told = [line.partition("-> ")[2] for line in played.feedback[1].splitlines() if "->" in line]
    assert ['"a b__c"', '"a b_c"', '"a__b c"'] == sorted(told)


@IN_ALL_WAYS
def test_arguments_may_be_called_as_what_names_an_action(play: Player, way: tuple[str, str]) -> None:
    """A tool gets them whether it is called or named in a plan."""
    input = {"id": "7", "type": "x", "condition": "false"}
    plan = {"batch": [act("Echo__say", **input), done(ok=True)]}
    direct = act("call_skill", skill="Echo", function="say", input=input)
    played, *_ = talk(play, PROGRAM, [[direct], [plan]], way, played={"detailed": True})
    calls = [event.fields for event in played.events if event.type == "action_started"]
    given = [fields["fields"]["input"] for fields in calls if fields["intent"] == "call_skill"]

    assert {"ok": True} == played.result
    assert [input, input] == given


@IN_ALL_WAYS
def test_a_tool_in_a_plan_may_have_a_condition(play: Player, way: tuple[str, str]) -> None:
    """It is computed, and is no argument; so is the kind of an action, however it is said."""
    skipped = act("Echo__plain", text="no", condition="1 > 2")
    asked = {"actionType": "delegate", "intent": "helper__greet", "data": {"n": 1}, "condition": "2 > 1", "id": "g"}
    plan = {"batch": [skipped, asked, act("print", message="${g.output.args.n}"), done(ok=True)]}
    played, *_ = talk(play, PROGRAM, [[plan]], way, calls=[("Boss.go", {})])

    assert (("1",), {"ok": True}, None) == (played.printed, played.result, played.error)
    assert ["helper::greet", "print", "return"] == [name for name in played.did() if name != "call_skill"]
