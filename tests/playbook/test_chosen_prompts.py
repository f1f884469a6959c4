"""Prompts whose fragments a small model chooses by rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
from koi_lang.runtime.journal.history import History
from tests.journal.again import Recorder
from tests.playbook.playing import Played, Player, Voice, act, done

PROGRAM = """
role Worker { can execute }
prompt Formal = "Be formal."
prompt Short = "Be short."
prompt Kind = "Be kind to {{args.name}}."
prompt Tone = compose {
  fragments: { formal: Formal, short: Short, kind: Kind }
  rules: "Formal for strangers, kind for friends."
}
agent Main : Worker {
  llm small = { provider: "openai", model: "small" }
  state { seen: number = 0 }
  on go(args: { name: string }) { playbook Tone + "Greet {{args.name}}." }
  on code(args: { name: string }) { return await Tone }
  on twice(args: { name: string }) {
    const both = await Promise.allSettled([this.code(args), this.code(args)])
    return both.map(each => each.status)
  }
}
"""
SAY = act("print", message="hi")


def system_and_text(played: Played, request: int) -> str:
    """All that a model was told in a request."""
    asked = played.requests[request]
    return f"{asked.system} {asked.messages}"


def test_the_chosen_fragments_stand_in_their_order(play: Player) -> None:
    """The model is asked once for two requests of the playbook, with the rules, and the values as data."""
    played = play(PROGRAM, ["kind\nshort", SAY, done()], payload={"name": "Ada"})
    asked = json.loads(played.requests[0].messages[0].text)
    told = system_and_text(played, 1)

    assert (None, 3) == (played.error, len(played.requests))
    assert ["rules", "args", "state", "fragments"] == [*asked]
    assert ({"name": "Ada"}, "Be formal.") == (asked["args"], asked["fragments"]["formal"])
    assert told.index("Be kind to") < told.index("Be short.") < told.index("Greet")
    assert "Be formal." not in told


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("none", []), ("I cannot say", ["formal", "short", "kind"]), ('["short", "loud"]', ["short"])],
)
def test_other_answers(answer: str, expected: list[str], play: Player) -> None:
    """`none` leaves all out; an answer that names none of them leaves none out; unknown names are passed over."""
    played = play(PROGRAM, [answer, done()], payload={"name": "Ada"})
    told = system_and_text(played, 1)

    assert expected == [name for name in ("formal", "short", "kind") if f"Be {name}" in told]


def test_another_state_is_another_question(play: Player) -> None:
    """Equal values are asked about once, others anew."""
    count = act("update_state", updates={"seen": 1})
    played = play(PROGRAM, ["kind", count, "short", SAY, done()], payload={"name": "Ada"})

    assert (None, 5) == (played.error, len(played.requests))
    assert [False, True] == ["Be short." in system_and_text(played, request) for request in (1, 4)]


def test_code_waits_for_it(play: Player) -> None:
    """In code the prompt is awaited, and is composed for the agent of the code."""
    (played,) = play.each(PROGRAM, ["short"], [("Main.code", {"name": "Ada"})])

    assert "Be short." == played.result


def test_a_replay_asks_nobody(play: Player) -> None:
    """The choice stands in the journal."""
    answers = ["kind", SAY, done()]
    tape = Recorder(play, PROGRAM, lambda: list(answers)).run({"name": "Ada"})
    history = History(tape.entries, "replay")
    replayed = play(PROGRAM, list(answers), payload={"name": "Ada"}, detailed=True, history=history)

    assert (None, None) == (tape.played.error, replayed.error)
    assert tape.played.printed == replayed.printed == ("hi",)


@pytest.mark.parametrize(("fails", "expected"), [(False, ["fulfilled"] * 2), (True, ["rejected", "fulfilled"])])
def test_who_waits_asks_again_where_the_first_one_failed(play: Player, fails: bool, expected: list[str]) -> None:
    """Of two who ask at the same time one is answered for both, and a failure is its own alone."""
    count = 0

    async def speak(request: Request) -> AsyncIterator[str]:
        nonlocal count
        count += 1
        await asyncio.sleep(0)
        if fails and count == 1:
            raise ProviderError("it is not there")
        yield "short"

    (played,) = play.each(PROGRAM, Voice(speak), [("Main.twice", {"name": "Ada"})])

    assert (expected, 1 + fails) == (played.result, count)
