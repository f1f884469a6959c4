"""Requests to models are counted, whatever they are for, so that one answer does not cause any number of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.events import AnswerDiscarded, ModelAnswered
from koi_lang.llm.messages import Delta, Request, StreamEnd
from koi_lang.runtime.budget.limits import LimitReachedError
from tests.journal.again import Recorder
from tests.playbook.playing import Played, Player, Voice, act, ask, done, playbook_in, solo

JUDGED = {"llm_eval": True, "instruction": "Go on?", "data": "d"}
WORDS = act("call_llm", data="d", instruction="words")
MANY = {
    "while": act("while", condition=JUDGED, actions=[WORDS], max_iterations=250),
    "repeat": act("repeat", count=500, actions=[WORDS]),
    "batch": {"batch": [WORDS] * 500},
    "parallel": {"parallel": [{**WORDS, "data": n} for n in range(500)]},
}


def voice(first: Any) -> Voice:
    """A model whose first answer is given, which returns with its second, and to which everything is true."""

    async def speak(request: Request) -> AsyncIterator[str]:
        is_turn = "Do the work." in playbook_in(request)
        turns = sum(message.role == "assistant" for message in request.messages)
        yield json.dumps(done(ok=True) if turns else first) if is_turn else "true"

    return Voice(speak)


def limit_of(played: Played) -> str:
    """The name of the limit that ended a call."""
    assert isinstance(played.error, LimitReachedError), played.told or played.result
    return played.error.limit


@pytest.mark.parametrize("way", MANY)
def test_one_answer_does_not_cause_any_number_of_requests(play: Player, way: str) -> None:
    """With two turns a playbook makes 40 requests, however its first answer asks for 500."""
    model = voice(MANY[way])
    played = play(solo("execute"), model, limits={"turns": 2, "repeats": 1000})

    assert ("requests", 40) == (limit_of(played), len(model.requests))
    assert "`Main.go` has made 40 requests to models, all that it may with 2 turns" in played.told
    assert "Write `budget { requests: N }` if it needs more." in played.told


def test_a_long_loop_needs_no_budget_of_its_own(play: Player) -> None:
    """The fifty turns that a playbook has by default are enough for a request in each of 900 rounds."""
    model = voice(act("repeat", count=900, actions=[WORDS]))

    assert {"ok": True} == play(solo("execute"), model).result


@pytest.mark.parametrize("way", MANY)
def test_a_budget_of_requests(play: Player, way: str) -> None:
    """`requests` counts instead of what goes with the turns; the request that is one too many is not made."""
    model = voice(MANY[way])
    played = play(solo("execute", more="budget { requests: 9 }"), model, limits={"turns": 2, "repeats": 1000})

    assert ("requests", 9) == (limit_of(played), len(model.requests))
    assert "`Main.go` has made 9 requests to models, all that it may" in played.told
    assert "Raise `budget { requests: N }` or `--max-requests` if the run needs more." in played.told


def test_requests_of_delegates_count_for_whoever_asked(play: Player) -> None:
    """Those of a team, in playbooks and in code, are within the budget of the one who delegated."""
    team = """
      role Lead { can delegate, can execute }
      agent Helper : Lead {
        on work(args) { playbook "Help." }
        on think(args) { return await this.callAction("call_llm", { data: "d", instruction: "words" }) }
      }
      team Crew { helper: Helper }
      agent Main : Lead { uses team Crew  budget { requests: 6 }  on go(args) { playbook "Do the work." } }
      """
    work = {"batch": [ask("helper::work"), ask("helper::think")]}

    async def speak(request: Request) -> AsyncIterator[str]:
        yield (
            json.dumps(work if "Do the work." in playbook_in(request) else done())
            if "words" not in request.system
            else "w"
        )

    model = Voice(speak)
    played = play(team, model)

    assert ("requests", 6) == (limit_of(played), len(model.requests))


def test_code_may_ask_as_often_as_it_likes(play: Player) -> None:
    """What goes with turns is for playbooks: code is the author's, and has a budget where one is written."""
    code = """
      on all(args) {
        for (let n = 0; n < 1100; n++) { await this.callAction("call_llm", { data: n, instruction: "words" }) }
        return "all"
      }"""
    model = voice(done())
    played = play(solo("execute", more=code), model, call="Main.all")
    bounded = play(solo("execute", more=f"budget {{ requests: 50 }} {code}"), voice(done()), call="Main.all")

    assert ("all", 1100) == (played.result, len(model.requests))
    assert ("requests", 50) == (limit_of(bounded), len(bounded.requests))


def test_an_answer_from_a_cache_is_no_request(play: Player) -> None:
    """What was kept from an earlier run costs nothing and does not count."""

    class Kept(Voice):
        async def __call__(self, request: Request) -> AsyncIterator[Delta]:
            async for delta in super().__call__(request):
                yield StreamEnd(None, "stop", replayed=True) if isinstance(delta, StreamEnd) else delta

    many = voice(MANY["repeat"])
    played = play(solo("execute", more="budget { requests: 9 }"), Kept(many._speak))

    assert ({"ok": True}, 0, 0) == (played.result, played.run.spending.requests, played.run.spending.tokens)


def test_a_skill_is_paid_for_by_the_playbook_that_calls_it(play: Player) -> None:
    """Code of a skill spends the budget of the playbook, and does not catch its limit."""
    skill = """
      skill S {
        export async function words(n: number) {
          let got = 0
          for (let i = 0; i < n; i++) {
            try { await Main.handle("think", {}); got++ } catch (e) { console.log(e.message) }
          }
          return got
        }
      }
      """
    main = (
        'uses skill S  on think(args) { return await this.callAction("call_llm", { data: 1, instruction: "words" }) }'
    )
    model = voice(act("call_skill", skill="S", function="words", input={"n": 30}))
    played = play(solo("execute", more=f"budget {{ requests: 5 }} {main}") + skill, model)

    assert (("requests", 5), ()) == ((limit_of(played), len(model.requests)), played.printed)


def test_a_run_that_goes_on_has_made_the_same_requests(play: Player) -> None:
    """Cut anywhere and resumed, a run is ended by the same request; one that was under way counts, too."""

    def again() -> Voice:
        return voice(act("repeat", count=9, actions=[WORDS]))

    recorder = Recorder(play, solo("execute", more="budget { requests: 6 }"), again, {"limits": {"repeats": 99}})
    whole = recorder.run()
    for n in range(1, len(whole.entries)):
        tape = recorder.again(whole.entries[:n])
        counted = [entry for entry in tape.entries if entry.kind in (ModelAnswered.type, AnswerDiscarded.type)]

        assert whole.played.told == tape.played.told
        assert len(counted) == tape.played.run.spending.requests >= 6
