"""Guards: what their models are asked, what passes them, and that nothing else goes out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.events import Event, OutputDelta
from koi_lang.llm.messages import Request
from koi_lang.runtime.context import current_run
from tests.playbook.playing import Player, Voice, act
from tests.projects import Project

PROGRAM = """
role Worker { can execute }
skill Marks { export function mark() { return 1 } }
agent Main : Worker {
  uses skill Marks
  state { asked = 0 }
  GUARDS
  on go(args: { text: string }): string { playbook "Answer {{args.text}}." }
}
"""
OUTPUT = 'guard output { playbook "Is {{output}} a polite answer to {{input.text}}?" }'
GIVE = act("return", data="Go away")
REFUSED = "the output guard of `Main` refuses the output of `go`: "


def guarded(guards: str) -> str:
    """A program whose agent has guards."""
    return PROGRAM.replace("GUARDS", guards)


def test_a_guard_is_asked_for_a_verdict_alone(play: Player) -> None:
    """Its model has no action and no memory, whatever the agent may do and has done."""
    played = play(guarded(OUTPUT), [GIVE, {"allow": True}], payload={"text": "hello"})
    asked = played.requests[1]

    assert "Go away" == played.result
    assert '{"allow":true | false,"reason"?:"<text>"}' in asked.system
    assert "Is ⟨args.output⟩ a polite answer to ⟨args.input.text⟩?" == asked.messages[-1].text
    assert asked.offer is None
    assert ["allow", "reason"] == list((asked.schema or {})["properties"])


def test_the_model_is_not_asked_about_what_an_input_guard_refuses(play: Player) -> None:
    """The first request comes behind the guard."""
    played = play(guarded('guard input { return input.text === "hello" }'), [], payload={"text": "odd"})

    assert not played.requests
    assert "the input guard of `Main` refuses the input of `go`: it gives `false`" in played.told


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([{"allow": False, "reason": "it is rude"}], "it is rude"),
        ([{"allow": False}], "it gives no `reason`"),
        (["Yes, it is fine."] * 2, "gave up after 2 answers that are no result"),
        ([{"allow": "yes"}] * 2, "gave up after 2 answers that are no result"),
        ([act("print", message="allowed")] * 2, "gave up after 2 answers that are no result"),
    ],
)
def test_what_is_no_consent_refuses(answers: list[Any], reason: str, play: Player) -> None:
    """A verdict of another form is none, and an action is not carried out."""
    played = play(guarded(OUTPUT), [GIVE, *answers], payload={"text": "hello"})

    assert f"{REFUSED}" in played.told
    assert reason in played.told


CODE = """
role Worker { can execute }
agent Desk : Worker {
  guard output { return output !== "odd" }
  resilience "ask" { retry_max_attempts = 2, retry_initial_delay = 1ms }
  private on ask(args: Json) { return args.text }
}
agent Main : Worker {
  on start(args: Json) {
    try { return await Desk.ask({ text: args.text }) } catch (error) { console.log(error.message) }
  }
}
run Main.start({ text: "odd" })
"""


def test_a_refusal_is_recorded_and_replayed(project: Project) -> None:
    """A replayed run takes the verdict of the model that the recorded one was given."""
    program = guarded(OUTPUT) + 'run Main.go({ text: "hello" })\n'
    project.write("main.koi", program)
    answers = [{"intent": "return", "data": "Go away"}, {"allow": False, "reason": "it is rude"}]
    project.write("answers.json", json.dumps(answers))
    done = project.koi("run", "main.koi", "--answers", "answers.json")
    replayed = project.koi("replay", "last")

    assert 77 == done.returncode
    assert f"{REFUSED}it is rude [E0511]" in done.stderr
    assert "nothing is different" in replayed.stderr
    events = project.koi("runs", "show", "last").stdout
    assert "output guard" in events


ACTION = 'guard action { playbook "May it do {{action.intent}} of {{action.data}}?" }'
SAY = act("print", message="Go away")


def test_a_model_is_told_that_its_action_is_refused(play: Player) -> None:
    """It goes on with something else, and is not to try it again."""
    answers = [SAY, {"allow": False, "reason": "it is rude"}, act("print", message="Hello"), {"allow": True}, GIVE]
    played = play(guarded(ACTION), answers, payload={"text": "hello"})
    told = "the action guard of `Main` refuses the action `print` of `go`: it is rude. Do not try it again."

    assert (("Hello",), "Go away") == (played.printed, played.result)
    assert f"🚫 print DENIED: {told}\nContinue." == played.requests[2].messages[-1].text
    assert "May it do ⟨args.action.intent⟩ of ⟨args.action.data⟩?" == played.requests[1].messages[-1].text


@pytest.mark.parametrize(("guards", "expected"), [("", {"Go ", "away"}), ("guard action { return false }", set[str]())])
def test_nobody_sees_what_a_guard_has_not_seen(guards: str, expected: set[str], play: Player) -> None:
    """A text is told while it is written where no guard of actions is to look at it."""
    onlooker: list[Event] = []
    answers = [[json.dumps(act("registry_get", key="x"))], ['{"intent": "print", "message": "Go ', 'away"}']]
    answers += [[json.dumps(GIVE)]]

    async def speak(request: Request) -> AsyncIterator[str]:
        current_run().events.subscribe(onlooker.append, transient=True)
        for piece in answers.pop(0):
            yield piece

    played = play(guarded(guards), Voice(speak), payload={"text": "hello"})
    texts = {event.data.text for event in onlooker if isinstance(event.data, OutputDelta)}

    assert expected == texts & {"Go ", "away"}
    assert played.printed == (("Go away",) if expected else ())


def test_verdicts_about_actions_are_replayed(project: Project) -> None:
    """A resumed or replayed run takes those that were given."""
    project.write("main.koi", guarded(ACTION) + 'run Main.go({ text: "hello" })\n')
    answers = [{"intent": "print", "message": "Hi"}, {"allow": True}, {"intent": "print", "message": "Go"}]
    project.write("answers.json", json.dumps([*answers, {"allow": False}, {"intent": "return", "data": "x"}]))
    done = project.koi("run", "main.koi", "--answers", "answers.json")
    replayed = project.koi("replay", "last")

    assert ("Hi\n", 0) == (done.stdout, done.returncode), done.stderr
    assert "nothing is different" in replayed.stderr


def test_an_audit_lists_guards(project: Project) -> None:
    """By whom they decide."""
    project.write("main.koi", guarded(OUTPUT + " guard input { return true }"))

    assert "output guard (model), input guard (code)" in project.koi("audit", "main.koi").stdout
