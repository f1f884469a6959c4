"""Who gets what is delegated, with which payload, and where it stops."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.undefined import undefined
from tests.playbook.playing import Player, act, ask, done

PROGRAM = """
role Lead { can delegate, can execute }
role Worker { can execute }
agent Coder : Worker {
  affordance "Writes programs."
  on startJob(args) { return { by: "Coder.startJob", args: args } }
  on review(args) { affordance "Looks for mistakes in a program"  return { by: "Coder.review" } }
}
agent Painter : Worker {
  on startJob(args) { return { by: "Painter.startJob" } }
  on drawPicture(args) { affordance "Paints what is described"  return { by: "Painter.drawPicture" } }
}
agent Typed : Worker {
  on add(args: { a: number, b: number, note?: string }) { return { sum: args.a + args.b } }
  on many(items: string[]) { return items.length }
  on choose(which: "red" | "blue") { return which }
  on maybe(n: number = 3) { return n }
  on told(args: { text: string }) { playbook "Say {{args.text}}." }
}
team Crew { coder: Coder, artist: Painter, second: Coder, numbers: Typed }
agent Main : Lead {
  uses team Crew
  on start(args) { return { by: "Main.start" } }
  on review(args) { return { by: "Main.review" } }
  on go(args) { playbook "Do the work." }
  on sends(args) { return await send peers.event("add").any()({ ...{ a: 1 } }) }
}
"""


def reached(play: Player, action: dict[str, Any]) -> str:
    """Who carried an action out, or why nobody did."""
    played = play(PROGRAM, [{"batch": [{**action, "id": "x"}, act("return", data="${x.output.by}")]}, done()])
    return played.feedback[-1] if len(played.requests) > 1 else played.result


@pytest.mark.parametrize(
    ("intent", "handler"),
    [
        ("coder::startJob", "Coder.startJob"),
        ("artist::startJob", "Painter.startJob"),
        ("Painter::startJob", "Painter.startJob"),
        ("ARTIST::start_job", "Painter.startJob"),
        ("painter.start job", "Painter.startJob"),
        ("second::review", "Coder.review"),
        ("artist::paint the picture that is described", "Painter.drawPicture"),
        ("startJob", "Coder.startJob"),
        ("start_job", "Coder.startJob"),
        ("Start job", "Coder.startJob"),
        ("review", "Coder.review"),
        ("draw a picture of a boat", "Painter.drawPicture"),
        ("look for mistakes", "Coder.review"),
        ("drawPictre", "Painter.drawPicture"),
    ],
)
def test_an_intent_reaches_its_member(play: Player, intent: str, handler: str) -> None:
    """A qualified name reaches that member; a name, words and likeness reach the first who is meant; never oneself."""
    assert handler == reached(play, ask(intent))
    assert handler == reached(play, act(intent))


@pytest.mark.parametrize(
    ("intent", "problem"),
    [
        ("artist::review", "`artist` does not handle `review`"),
        ("numbers::startJob", "`numbers` does not handle `startJob`"),
        ("main::start", "nobody `Main` can reach handles `main::start`"),
        ("nobody::startJob", "nobody `Main` can reach handles `nobody::startJob`"),
        ("coder::", "`coder` does not handle ``"),
        ("bake a cake", "nobody `Main` can reach handles `bake a cake`"),
        ("strt", "nobody `Main` can reach handles `strt`"),
    ],
)
def test_an_intent_that_means_nobody_is_an_error(play: Player, intent: str, problem: str) -> None:
    """A qualified name that does not fit reaches nobody else, and words that mean nobody reach nobody."""
    assert problem in reached(play, ask(intent))


def test_the_nearest_target_is_suggested(play: Player) -> None:
    """The model hears whom it may have meant."""
    assert "did you mean `coder::startJob`?" in reached(play, ask("codr::startJob"))


def test_the_fields_of_a_delegate_are_its_payload(play: Player) -> None:
    """Without `data`, everything beside the name is handed on."""
    action = {"actionType": "delegate", "intent": "coder::startJob", "n": 1, "id": "x"}
    played = play(PROGRAM, [{"batch": [action, act("return", data="${x.output.args}")]}])

    assert {"n": 1, "id": "x"} == played.result


def test_the_prompt_lists_whom_it_can_reach(play: Player) -> None:
    """Every member is listed once, with its events, what they take and what they are for."""
    system = play(PROGRAM, [done()]).requests[0].system

    assert (
        "### coder - Writes programs.\n- coder::startJob(data?: object)\n- coder::review(data?: object) Looks" in system
    )
    assert "- numbers::add(a: number, b: number, note?: string)" in system
    assert ("second" in system, "main::" in system) == (False, False)


def test_comments_of_fields_stand_in_the_list(play: Player) -> None:
    """Those of what a member takes and gives, and those of declared types."""
    described = """
role Lead { can delegate, can execute }
// A wish of a customer.
type Wish = {
  text: string // as they wrote it
}
agent Clerk : Lead {
  on note(args: {
    wish: Wish,
    due?: string // a day
  }): {
    id: string // of the ticket
  } { return { id: "1" } }
}
team Desk { clerk: Clerk }
agent Main : Lead {
  uses team Desk
  on go(args) { playbook "Have the clerk note it." }
}
"""
    system = play(described, [done()]).requests[0].system

    assert "- clerk::note(wish: Wish, due?: string (a day)): { id: string (of the ticket) }" in system
    assert "Wish = { text: string (as they wrote it) } // A wish of a customer." in system


# ---------------------------------------------------------------- payloads

WRONG = [
    ("add", {"a": 1}, "`b` is missing"),
    ("add", {"a": "one", "b": None}, "`a` must be a number, not 'one'; `b` must be a number, not null"),
    ("add", {"a": 1, "b": 2, "note": 5}, "`note` must be a text, not 5"),
    ("add", [1, 2], "the value must be an object, not [ 1, 2 ]"),
    ("many", ["a", 5], "`[1]` must be a text, not 5"),
    ("choose", "green", "the value must be 'red' or 'blue', not 'green'"),
    ("told", {"txt": "x"}, "`text` is missing"),
]


@pytest.mark.parametrize(("event", "payload", "problem"), WRONG)
def test_a_wrong_payload_is_an_error_for_the_model(play: Player, event: str, payload: Any, problem: str) -> None:
    """A member whose parameter has a type is not called with anything else; the model hears what is wrong."""
    played = play(PROGRAM, [ask(f"numbers::{event}", payload), done()])
    events = [event for event in played.events if event.type == "handler_started" and event.agent == "Typed"]

    assert f"`Typed.{event}` cannot take what it is given: {problem}. It takes (" in played.feedback[1]
    assert [] == events


@pytest.mark.parametrize(
    ("event", "payload", "result"),
    [
        ("add", {"a": 1, "b": 2.5}, {"sum": 3.5}),
        ("add", {"a": 1, "b": 2, "note": "x", "more": []}, {"sum": 3}),
        ("many", ["a", "b"], 2),
        ("many", [], 0),
        ("choose", "blue", "blue"),
        ("maybe", 5, 5),
    ],
)
def test_a_fitting_payload_is_handed_on(play: Player, event: str, payload: Any, result: Any) -> None:
    """What fits the type of the parameter arrives as it is."""
    answers = [{"batch": [ask(f"numbers::{event}", payload, id="x"), act("return", data="${x.output}")]}]

    assert result == play(PROGRAM, answers).result


def test_a_wrong_payload_in_code_names_the_place(play: Player) -> None:
    """In a program the error stands at the `send`."""
    played = play(PROGRAM, [], call="Main.sends")

    assert "`Typed.add` cannot take what it is given: `b` is missing" in played.told
    assert 'return await send peers.event("add").any()({ ...{ a: 1 } })' in played.told


@pytest.mark.parametrize(
    ("event", "payload", "problem"),
    [("add", {}, "`a` is missing; `b` is missing"), ("maybe", "x", "must be a number, not 'x'")],
)
def test_a_wrong_payload_of_a_call_is_refused(play: Player, event: str, payload: Any, problem: str) -> None:
    """The check counts for everybody who calls a handler."""
    assert problem in str(play(PROGRAM, [], call=f"Typed.{event}", payload=payload).error)


def test_a_default_stands_in_for_nothing(play: Player) -> None:
    """A parameter with a default may be given nothing at all."""
    assert 3 == play(PROGRAM, [], call="Typed.maybe", payload=undefined).result


# ---------------------------------------------------------------- circles of delegation

CIRCLE = """
role Lead { can delegate, can execute }
agent A : Lead { uses team All  on go(args) { playbook "Be A." } }
agent B : Lead { uses team All  on go(args) { playbook "Be B." } on code(args) { return await A.handle("go", {}) } }
agent Leaf : Lead { on go(args) { return 1 } }
team All { a: A, b: B, leaf: Leaf }
"""


def test_delegating_back_is_refused(play: Player) -> None:
    """A call that is being carried out cannot be asked for again from within."""
    answers = {"Be A": [ask("b::go"), done(ok=True)], "Be B": [ask("a::go"), done()]}
    played = play(CIRCLE, answers, call="A.go")

    assert {"ok": True} == played.result
    assert "Infinite loop detected: `A.go` is already being carried out" in played.feedback[2]


def test_a_circle_through_code_is_refused(play: Player) -> None:
    """Code between two playbooks does not hide that they call each other."""
    answers = {"Be A": [ask("b::code"), ask("b::code"), done(inner=True), done(outer=True)]}
    played = play(CIRCLE, answers, call="A.go")

    assert {"outer": True} == played.result
    assert "Infinite loop detected: `B.code` is already being carried out" in played.feedback[2]


def test_branches_have_stacks_of_their_own(play: Player) -> None:
    """The same member may work in two branches at the same time, and again afterwards."""
    twice = {"parallel": [ask("leaf::go"), ask("leaf::go"), ask("b::go")]}
    answers = {"Be A": [twice, ask("leaf::go"), done(ok=True)], "Be B": [ask("leaf::go"), done()]}
    played = play(CIRCLE, answers, call="A.go")

    assert ({"ok": True}, []) == (played.result, played.did("action_failed"))
