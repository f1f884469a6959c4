"""Few words of a model that ask for very much: refused before memory or time is gone."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.guards.size import MAX_BYTES, weight
from koi_lang.runtime.playbook import action_layers
from tests.playbook.playing import Player, act, done, solo
from tests.running import RecordingHost

KEEPING = solo("execute", more='state { text: string = "x", list: Json = [] }')
SKILLED = """
role Worker { can execute }
skill Web { affordance "Reads pages." export function page() { return { answer: "yes", size: 3 } } }
agent Main : Worker { uses skill Web  on go(args) { playbook "Do the work." } }
"""
AGAIN = {"batch": [done()]}


def update(**updates: Any) -> dict[str, Any]:
    """An action that changes the state."""
    return act("update_state", updates=updates)


@pytest.mark.parametrize("growing", [update(text="${state.text}" * 100), update(list=["${state.list}"] * 100)])
def test_references_do_not_fill_the_memory(play: Player, growing: dict[str, Any]) -> None:
    """What mentions itself a hundred times, again and again, is refused at some point, and the model is told."""
    played = play(KEEPING, [{"batch": [growing] * 5}, AGAIN])

    assert "this becomes larger than 20,000,000 characters" in played.feedback[1]
    assert 1 < weight(played.state("Main"), MAX_BYTES) <= MAX_BYTES


def test_the_state_does_not_hold_itself(play: Player) -> None:
    """A reference to the whole state within the state would have no end."""
    played = play(KEEPING, [update(list=["${state}"]), AGAIN])

    assert "the state cannot hold itself" in played.feedback[1]
    assert [] == played.state("Main")["list"]


def test_a_deep_text_is_a_result(play: Player) -> None:
    """A page that looks like JSON of endless depth is taken as the text that it is."""
    source = SKILLED.replace('{ answer: "yes", size: 3 }', '{ result: "[".repeat(100000) }')
    answer = [act("call_skill", skill="Web", function="page", input={}), act("print", message="read"), done()]

    assert ("read",) == play(source, [{"batch": answer}]).printed


def test_a_text_of_references_is_measured_before_it_is_written(play: Player) -> None:
    """One text may mention a large one often; it is not put together first."""
    often = act("print", message="${args.text}" * 30)

    played = play(solo("execute"), [often, AGAIN], payload={"text": "x" * 1_000_000})

    assert played.printed == ()
    assert "this becomes larger" in played.feedback[1]


def test_the_results_of_a_loop_do_not_fill_the_memory(play: Player) -> None:
    """A loop keeps what its actions give, so a large result cannot be repeated a thousand times."""
    loop = act("repeat", count=1000, actions=[act("update_state", updates={"text": "${args.text}"})])

    played = play(KEEPING, [loop, AGAIN], payload={"text": "x" * 5_000_000})

    assert 3 == played.did().count("update_state") - 1
    assert "this becomes larger" in played.feedback[1]


def test_loops_within_loops_end(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three loops of a thousand within each other would go on for days."""
    monkeypatch.setattr(action_layers, "MAX_REPEATED", 50)
    inner = act("repeat", count=1000, actions=[act("print", message="x")])

    played = play(solo("execute"), [act("repeat", count=1000, actions=[inner]), AGAIN])

    assert 49 == len(played.printed)
    assert "loops within loops have carried out 50 actions" in played.feedback[1]


def test_a_reference_gives_no_method(play: Player) -> None:
    """A path of a model reaches what a list holds, never a function that changes it when the value is shown."""
    shown = act("print", message="${args.items.pop ?? 'no'}")
    answers = [update(list={"toString": "${args.items.pop}"}), shown, done()]

    played = play(KEEPING, answers, payload={"items": [1, 2, 3]})

    assert "`args.items.pop` is a function" in played.feedback[1]
    assert (("no",), []) == (played.printed, played.state("Main")["list"])


def test_an_earlier_result_cannot_answer_for_the_person(play: Player) -> None:
    """A page that holds a field `answer` does not stand for what the person answers later."""
    answer = [
        act("call_skill", skill="Web", function="page", input={}),
        act("prompt_user", question="Delete it?"),
        act("print", message="${answer} ${size}"),
        done(),
    ]

    played = play(SKILLED, [{"batch": answer}], host=RecordingHost(["no"]))

    assert ("no 3",) == played.printed
