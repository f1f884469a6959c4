"""Functions of skills that need a permission: models see and call them where the role has it; code always may."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.hooks.types import Rewrite
from tests.extensions.hooking import hooks, saying
from tests.llm.server import Answer, ModelServer
from tests.llm.wire import call
from tests.playbook.playing import Played, Player, Voice, act, ask, done
from tests.playbook.test_meaning import connected, meaning, served
from tests.playbook.transports import MODELS, WAYS, talk

IN_ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids="-".join)
PROVIDERS = pytest.mark.parametrize("provider", list(MODELS))
SKILLS = """
skill Notes {
  affordance "Keeps notes"
  needs write
  needs read export function glance(): string { affordance "What was noted."  return "nothing" }
  export function jot(text: string): number { affordance "Note a line."  return keep(text) }
  needs registry:write export function purge(): number { affordance "Forget all."  return keep("forgotten") }
  function keep(text: string): number { console.log("kept " + text)  return text.length }
}
skill Dustbin { affordance "Throws everything away"  needs write  export function empty() { console.log("emptied") } }
skill Open { affordance "Sums"  export function add(a: number, b: number): number { return a + b } }
"""
PROGRAM = """
role Reader {{ can {can}, can delegate, can execute }}
role Scribe {{ can {can}, can write, can registry }}
{skills}
agent Main : Reader {{
  uses skill Notes, Dustbin, Open  uses team Crew
  on go(args) {{ playbook "Do the work." }}
  on look(args) {{ return [jot("by name"), await this.callSkill("Notes", "purge")] }}
  on perform({{ input }}) {{ return await callAction("call_skill", {{ skill: "Notes", function: "jot", input }}) }}
}}
agent Other : Scribe {{ uses skill Notes  on help(args) {{ playbook "Help." }} }}
team Crew {{ other: Other, main: Main }}
"""
END = [done(ok=True)]


def program(can: str = "read") -> str:
    """The program whose main agent may do something beside delegating and executing."""
    return PROGRAM.format(can=can, skills=SKILLS)


def use(function: str = "jot", skill: str = "Notes", **fields: Any) -> dict[str, Any]:
    """A call of a function."""
    return act("call_skill", skill=skill, function=function, **{"input": {"text": "x"}, **fields})


def lacks(what: str, permission: str) -> str:
    """What a model is told that asks for something that the role of the main agent does not permit."""
    return f"DENIED: `{what}` needs the permission `{permission}`, which the role `Reader` lacks. Do not try it again."


@pytest.mark.sampled(4)
@IN_ALL_WAYS
def test_what_the_role_lacks_is_neither_offered_nor_done(play: Player, way: tuple[str, str]) -> None:
    """A request names no function that is not permitted; a model that asks for one all the same is refused."""
    turns = [[use("glance", input={})], [use()], [use("purge", input={})], [use("empty", "Dustbin", input={})], END]
    played, asked, _ = talk(play, program(), turns, way)
    offered = json.dumps(asked[0].body)

    assert ["glance", "add"] == [
        name for name in ("glance", "jot", "purge", "empty", "add", "Dustbin") if name in offered
    ]
    assert (({"ok": True}), ()) == (played.result, played.printed)
    assert "nothing" in played.feedback[1]
    for feedback, what, permission in zip(
        played.feedback[2:],
        ("Notes.jot", "Notes.purge", "Dustbin.empty"),
        ("write", "registry:write", "write"),
        strict=True,
    ):
        assert lacks(what, permission) in feedback


@PROVIDERS
def test_a_tool_that_is_not_offered_is_refused(play: Player, provider: str) -> None:
    """Its name means the function that it would mean to others, also in a plan."""
    plan = call("plan", actions=[act("Notes__jot", text="x"), act("print", message="behind")])
    turns = [Answer(calls=(call("Notes__jot", text="x"),)), Answer(calls=(plan,)), END]
    played, *_ = talk(play, program(), turns, (provider, "tools"))

    assert ({"ok": True}, ()) == (played.result, played.printed)
    assert [lacks("Notes.jot", "write") in feedback for feedback in played.feedback] == [False, True, True]


@pytest.mark.parametrize(("can", "may"), [("read", ["glance"]), ("write", ["glance", "jot"]), ("registry", ["purge"])])
def test_a_permission_unlocks_its_functions(play: Player, can: str, may: list[str]) -> None:
    """`write` includes `read`, a plain word its details; what a function says of itself counts before its skill."""
    functions = ("glance", "jot", "purge")
    played = play(program(can), [use(name, input={"text": "x"} if name == "jot" else {}) for name in functions] + END)
    failed = [event.fields["intent"] for event in played.events if event.type == "action_failed"]

    assert may == [name for name in functions if f"- Notes.{name}(" in played.requests[0].system]
    assert len(functions) - len(may) == len(failed)


def test_a_skill_without_permitted_functions_is_not_there(play: Player) -> None:
    """Without any, a model is not even told of `call_skill`; what is nearly the name of one is not suggested."""
    source = program("think").replace("uses skill Notes, Dustbin, Open", "uses skill Notes, Dustbin")
    played = play(source, [use(skill="Nots"), use("jto"), act("Notes.jote", text="x"), act("glance"), done()])
    told = "".join(played.feedback[1:])

    assert ["Skills", "call_skill", "Notes", "jot("] == [
        word for word in ("Skills", "call_skill", "Notes", "jot(") if word not in played.requests[0].system
    ]
    assert "`Main` uses no skill `Nots`. it uses no skills at all." in told
    assert not any(f"mean `{name}" in told for name in ("Notes", "jot", "glance"))


SPELLINGS = {
    "as a function of the skill": act("Notes.jot", text="x"),
    "as a tool": act("Notes__jot", text="x"),
    "as another system calls it": {"name": "call_skill", "arguments": {"skill": "Notes", "function": "jot"}},
    "under data": {"intent": "call_skill", "data": {"skill": "Notes", "function": "jot", "input": "x"}},
    "by another name": act("call_skill", name="Notes", function="jot", arguments={"text": "x"}),
    "in a loop": act("repeat", count=2, actions=[use()]),
    "in a branch": act("if", condition=True, then=[{"parallel": [use(), use()]}]),
    "in a loop in a loop": act("while", condition="1 < 2", actions=[act("repeat", count=1, actions=[use()])]),
    "by the result of another one": {
        "batch": [act("call_llm", id="f", data="d", instruction="Name it."), use("${f.output.result}")]
    },
    "the only one": act("call_skill", skill="Dustbin", input={}),
    "to nobody": {"actionType": "delegate", "intent": "Notes.jot", "data": {"text": "x"}},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_however_it_is_called(play: Player, spelling: str) -> None:
    """No spelling, place or reference leads past the permission."""
    answers = {"Name it": ["jot"], "Do the work": [SPELLINGS[spelling], done()]}
    played = play(program(), answers)

    assert ((), None) == (played.printed, played.error)
    assert ("DENIED" in played.feedback[-1]) == (spelling != "to nobody")


def test_the_first_function_is_the_first_permitted_one(play: Player) -> None:
    """Who names no function gets the first one that it was told of."""
    played = play(program("registry"), [act("call_skill", skill="Notes"), done()])

    assert ("kept forgotten",) == played.printed


def test_a_hook_that_rewrites_the_function_leads_past_nothing(play: Player) -> None:
    """What is carried out counts, not what was asked for."""
    rewrite = saying(Rewrite({"skill": "Notes", "function": "jot", "input": {"text": "x"}}))
    played = play(program(), [use("glance", input={}), done()], added=hooks(rewrite))

    assert () == played.printed
    assert lacks("Notes.jot", "write") in played.feedback[1]


def test_words_that_mean_a_skill_lead_past_nothing(play: Player) -> None:
    """A skill of which nothing is permitted is not among those that words are compared with."""
    source = program().replace(
        "uses team Crew", 'llm embedding = { provider: "openai", model: "m" }  uses team Crew', 1
    )
    server = ModelServer(embed=meaning)
    played: Played = served(
        server, lambda: play(source, [use("empty", "throw it all away"), done()], **connected(server))
    )

    assert () == played.printed
    assert not any("Throws everything away" in text for asked in server.embedded for text in asked.body["input"])
    assert "failed: " in played.feedback[1] or "DENIED" in played.feedback[1]


def test_code_may_call_every_function(play: Player) -> None:
    """By name, by `callSkill` and by `callAction`: what the author of a program writes is not what a model asks for."""
    outcomes = play.each(program(), [done()], [("Main.look", {}), ("Main.perform", {"input": "by action"})])

    assert [[7, 9], 9] == [outcome.result for outcome in outcomes]
    assert ("kept by name", "kept forgotten", "kept by action") == outcomes[0].printed


def test_the_role_of_the_delegate_counts(play: Player) -> None:
    """Each agent may what its own role permits, whoever asked it."""
    answers = {"Do the work": [ask("other::help"), use(), done()], "Help": [use(), use("purge", input={}), done()]}
    played = play(program(), answers)

    assert ("kept x", "kept forgotten") == played.printed
    assert lacks("Notes.jot", "write") in played.feedback[-1]


def test_forty_at_once(play: Player) -> None:
    """Playbooks of both roles that run together do not lend each other permissions."""
    more = """
    agent Start : Scribe {
      on both(args) {
        const tasks = Array.from({ length: 40 }, (_, n) => n % 2 ? Main.go({}) : Other.help({}))
        return (await Promise.all(tasks)).length
      }
    }
    """

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(done() if "call_skill" in request.messages[-1].text else use())

    played = play(program() + more, Voice(speak), call="Start.both")

    assert (40, ("kept x",) * 20) == (played.result, played.printed)
    assert 20 == sum(lacks("Notes.jot", "write") in feedback for feedback in played.feedback)
