"""A run that goes on: hooks are not asked again about what is known, and extensions have their state again."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.errors import ExtensionError
from koi_lang.extensions import Koi
from koi_lang.extensions.collecting import collect_extensions
from koi_lang.extensions.finding import Extension
from koi_lang.redaction.redactor import HIDDEN
from koi_lang.runtime.hooks.additions import Additions, ExtensionState
from koi_lang.runtime.hooks.types import ActionCall, Ask, Deny, ModelCall, Replace, Rewrite
from koi_lang.runtime.journal.history import in_doubt
from tests.extensions.hooking import Person, entries, hooks, past_of, saying, told
from tests.playbook.playing import Played, Player, act, ask, done, solo

STATE = """
    role Worker { can execute, can delegate }
    team T { helper: Helper }
    agent Helper : Worker { on help(args: { n: number }) { return args.n } }
    agent Main : Worker {
      uses team T
      state { n: number = 0 }
      on go(args) { playbook "Count." }
    }
    """
COUNT = [act("update_state", updates={"n": 1}), ask("helper::help", {"n": 1}), act("print", message="x"), done(n=1)]
BATCH = [{"batch": COUNT}]


def counting(koi: Koi) -> None:
    """Count what is asked about, and use an action that counts, too."""
    koi.state["calls"] = 0

    @koi.before_action
    def count(call: ActionCall) -> None:
        koi.state["calls"] += 1

    @koi.action(safe=True)
    def tick(context: Any) -> int:
        """Tick."""
        koi.state["ticks"] = koi.state.get("ticks", 0) + 1
        return int(koi.state["ticks"])


def additions(extend: Any = counting) -> Additions:
    """What a run has of one extension."""
    return collect_extensions([Extension("count", "a file", "", lambda: extend)]).added


def is_done(intent: str) -> Any:
    """Finds the end of an action."""
    return lambda entry: entry.kind == "done" and entry.data.get("intent") == intent


def go_on(play: Player, first: Played, after: str, added: Additions, answers: Any = BATCH) -> Played:
    """The run again, from the end of an action on."""
    return play(STATE, answers, added=added, detailed=True, history=past_of(first, is_done(after)))


def test_known_actions_are_not_asked_about(play: Player) -> None:
    """Only what follows the interruption is: neither state changes nor delegations nor effects that are known."""
    first = play(STATE, BATCH, added=hooks(saying()), detailed=True)
    again = saying()

    for after, asked in (("update_state", 3), ("helper::help", 2), ("print", 1)):
        again.seen.clear()
        second = go_on(play, first, after, hooks(again))
        assert (len(again.seen), second.result) == (asked, {"n": 1}), after


def test_decisions_count_again(play: Player) -> None:
    """What was rewritten, replaced and denied is so again, and no hook is asked."""
    decisions = [Rewrite({"updates": {"n": 7}}), Replace("helped"), None]
    first = play(STATE, BATCH, added=hooks(saying(*decisions)), detailed=True)
    again = saying(Deny("asked again"))
    second = go_on(play, first, "print", hooks(again))

    assert (second.state("Main")["n"], [call.intent for call in again.seen]) == (7, ["return"])
    assert [entry.data["decision"] for entry in entries(first) if entry.kind == "hook_decided"] == [
        "rewrite", "replace", "allow", "allow",
    ]  # fmt: skip


@pytest.mark.parametrize("intent", ["print", "update_state"])
def test_a_denial_counts_again(play: Player, intent: str) -> None:
    """The model that was told of a denial reads the same, and the person is not asked again."""

    def careful(call: ActionCall) -> Any:
        return Ask("sure?") if call.intent == intent else None

    batch = [{"batch": [next(action for action in COUNT if action["intent"] == intent)]}, done(n=2)]
    person = Person(decisions=["no"])
    first = play(STATE, batch, added=hooks(careful), host=person, detailed=True)
    past = past_of(first, lambda entry: entry.kind == "failed")
    second = play(STATE, batch, added=hooks(careful), host=person, detailed=True, history=past)

    assert (second.printed, second.state("Main")["n"], len(person.asked)) == ((), 0, 1)
    assert second.feedback[-1] == first.feedback[-1]


@pytest.mark.parametrize("by_code", [True, False])
def test_a_denial_that_ended_a_run_is_over(play: Player, by_code: bool) -> None:
    """What was denied is not in doubt; a hook that ended the run is asked anew, others are not."""
    code = """
        role Worker { can execute }
        agent Main : Worker { on go(args) { return await callAction("shell", { command: "true", description: "x" }) } }
        """
    source, answers = (code, []) if by_code else (solo("execute"), [act("shell", command="true", description="x")])
    first = play(source, answers, added=hooks(saying(Deny("shut"))), detailed=True, limits={"turns": 1})
    past = past_of(first)
    again = saying()
    second = play(
        source, answers, added=hooks(again), allow=["shell"], detailed=True, history=past, limits={"turns": 1}
    )

    assert (first.error is not None, in_doubt(past.entries), len(again.seen)) == (True, [], 1 if by_code else 0)
    assert not by_code or second.result["exitCode"] == 0


def test_replaced_results_come_again(play: Player) -> None:
    """The result that a hook put in the place of another, also for actions that are carried out again."""

    def other(call: ActionCall, result: Any) -> Any:
        return Replace(f"other {call.intent}") if call.intent != "return" else None

    answers = [{"batch": COUNT[:3]}, done(n=1)]
    first = play(STATE, answers, added=hooks(other, kind="after_action"), detailed=True)
    silent = hooks(lambda call, result: None, kind="after_action")
    second = play(STATE, answers, added=silent, detailed=True, history=past_of(first, is_done("print")))

    assert "other update_state" in first.feedback[1]
    assert second.feedback[-1] == first.feedback[1]


def test_a_hook_that_is_new_leaves_the_past_alone(play: Player) -> None:
    """A run that was recorded without hooks goes on with one: what is known is not asked about."""
    first = play(STATE, BATCH, detailed=True)
    gate = saying()
    second = go_on(play, first, "print", hooks(gate))

    assert ([call.intent for call in gate.seen], second.result) == (["return"], {"n": 1})


def test_requests_are_not_asked_about_again(play: Player) -> None:
    """A known answer is taken as hooks left it; what the program asks has not changed by a rewriting."""

    def marked(call: ModelCall) -> Any:
        return Rewrite(type(call.request)("rewritten", call.request.messages))

    answers = [act("print", message="x"), done(n=1)]
    first = play(solo(), answers, added=hooks(marked, kind="before_model"), detailed=True)
    again = saying()
    past = past_of(first, is_done("print"))
    second = play(solo(), answers, added=hooks(again, kind="before_model"), detailed=True, history=past)

    assert (first.requests[0].system, second.result) == ("rewritten", {"n": 1})
    assert (len(again.seen), len(second.requests)) == (1, 1)


def test_a_denied_request_fails_again(play: Player) -> None:
    """Code that went on after a denial goes on after it again, without asking the hook."""
    source = """
        role Worker { can execute }
        agent Main : Worker {
          on go(args) {
            try { await this.handle("ask", {}) } catch (e) { console.log(e.message) }
            await callAction("print", { message: "x" })
          }
          on ask() { playbook "Ask." }
        }
        """
    first = play(source, [], added=hooks(saying(Deny("no")), kind="before_model"), detailed=True)
    again = saying()
    past = past_of(first, lambda entry: entry.kind == "printed")
    second = play(source, [], added=hooks(again, kind="before_model"), detailed=True, history=past)

    assert (len(first.printed), again.seen, second.printed) == (2, [], ("x",))


# ---------------------------------------------------------------- state


def test_changes_of_a_state_are_events(play: Player) -> None:
    """Each change tells whose state it is and all that is in it."""
    played = play(solo(), [act("tick"), done()], added=additions(), detailed=True)

    assert [data["state"] for data in told(played, "extension_state")] == [
        {"calls": 1}, {"calls": 1, "ticks": 1}, {"calls": 2, "ticks": 1},
    ]  # fmt: skip


@pytest.mark.parametrize("after", ["update_state", "tick", "helper::help", "print"])
def test_a_state_comes_again(play: Player, after: str) -> None:
    """Wherever a run is interrupted, it ends with the same state, and its journal holds each change once."""
    batch = [{"batch": [COUNT[0], act("tick"), *COUNT[1:3], act("tick"), COUNT[3]]}]
    whole, going = additions(), additions()
    first = play(STATE, batch, added=whole, detailed=True)
    second = go_on(play, first, after, going, batch)

    known = [entry for entry in past_of(first, is_done(after)).entries if entry.kind == "extension_state"]
    new = [event.fields for event in second.events if event.type == "extension_state" and not event.recalled]
    assert dict(whole.states[0]) == dict(going.states[0]) == {"calls": 6, "ticks": 2}
    assert [entry.data["change"] for entry in known] + [data["change"] for data in new] == list(range(1, 9))


def test_a_state_is_what_was_set() -> None:
    """What is taken out, or was put in, can be changed without changing the state; deleting is a change."""
    state, items = ExtensionState("x"), [1]
    state["items"] = items
    items.append(2)
    state["items"].append(3)
    assert dict(state) == {"items": [1]}

    del state["items"]
    assert (len(state), list(state)) == (0, [])


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), {1: 2}, b"x"])
def test_a_state_holds_json(value: Any) -> None:
    """What the journal cannot give back is refused when it is set."""
    with pytest.raises(ExtensionError, match=r"the extension `x` keeps `a: .*`, which is no JSON value"):
        ExtensionState("x")["a"] = value


def test_a_decision_without_its_secret_is_made_again(play: Player) -> None:
    """What a hook rewrote with a secret was not written down whole, so that the hook is asked for it again."""
    first = play(STATE, BATCH, added=hooks(saying(Rewrite({"updates": {"n": "key abc"}}))), detailed=True)
    again = saying(Rewrite({"updates": {"n": "key abc"}}))
    past = past_of(first, is_done("print"), lambda text: text.replace("abc", HIDDEN))
    second = play(STATE, BATCH, added=hooks(again), detailed=True, history=past)

    assert (second.state("Main")["n"], [call.intent for call in again.seen]) == ("key abc", ["update_state", "return"])


def test_a_decision_that_says_redacted_by_chance_counts(play: Player) -> None:
    """What was written down as it was is not asked for again, whatever it says."""
    first = play(STATE, BATCH, added=hooks(saying(Rewrite({"updates": {"n": f"key {HIDDEN}"}}))), detailed=True)
    again = saying()
    second = go_on(play, first, "print", hooks(again))

    assert (f"key {HIDDEN}", ["return"]) == (second.state("Main")["n"], [call.intent for call in again.seen])
