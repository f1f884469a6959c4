"""Every limit ends a playbook, says so, and can be set."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from koi_lang.errors import exit_code, failure_code
from koi_lang.llm.messages import Request, Usage
from koi_lang.runtime.budget.limits import LimitReachedError
from tests.playbook.playing import Played, Player, Voice, act, ask, done, playbook_in, solo
from tests.running import RecordingHost

TEAM = """
role Lead { can delegate }
agent Helper : Lead {
  on work(args) { playbook "Help." }
  on think(args) { return await this.callAction("call_llm", { data: "d", instruction: "Think." }) }
}
team Crew { helper: Helper }
agent Main : Lead { uses team Crew  BUDGET  on go(args) { playbook "Do the work." } }
"""


@dataclass(slots=True)
class Clock:
    """A clock that goes on by itself a little with every look at it."""

    step_s: float
    now_s: float = 0.0

    def __call__(self) -> float:
        """The time."""
        self.now_s += self.step_s
        return self.now_s


def limit(played: Played) -> str:
    """The name of the limit that ended a call, which has the code of its kind and names the line of the playbook."""
    assert isinstance(played.error, LimitReachedError)
    kinds = {"circles": ("E0505", 70), "failures": ("E0505", 70), "result": ("E0506", 76)}
    assert (failure_code(played.error), exit_code(played.error)) == kinds.get(played.error.limit, ("E0501", 4))
    assert ".koi:" in played.told
    assert "playbook" in played.told
    return played.error.limit


def talking(text: str, usage: Usage | None = None, name: str = "voice") -> Voice:
    """A model that always gives the same answer."""

    async def speak(request: Request) -> AsyncIterator[str]:
        yield text

    return Voice(speak, usage, name)


def counting(usage: Usage | None = None, name: str = "voice") -> Voice:
    """A model that prints another number with every answer."""
    numbers = iter(range(10_000))

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(act("print", message=next(numbers)))

    return Voice(speak, usage, name)


# ---------------------------------------------------------------- turns


@pytest.mark.parametrize(
    ("program", "limits", "turns"),
    [
        (solo(), {}, 50),
        (solo(), {"turns": 7}, 7),
        (solo(), {"turns": 1}, 1),
        (solo(more="budget { turns: 4 }"), {}, 4),
        (solo(more="budget { turns: 4 }"), {"turns": 6}, 6),
    ],
)
def test_turns(play: Player, program: str, limits: dict[str, int], turns: int) -> None:
    """A playbook that does not return is ended after 50 turns, or as many as it, or the run, says."""
    played = play(program, counting(), limits=limits)

    assert ("turns", turns) == (limit(played), len(played.requests))
    assert f"`Main.go` did not return within {turns} turn{'s' if turns > 1 else ''} [" in played.told


def test_a_call_for_words_is_no_turn(play: Player) -> None:
    """`call_llm` is not an answer to the playbook, so it does not count as a turn."""
    words = {"batch": [act("call_llm", data="d", instruction="words")] * 5}
    played = play(solo(), {"Do the work": [words, done(ok=True)], "words": ["w"] * 5}, limits={"turns": 2})

    assert {"ok": True} == played.result


# ---------------------------------------------------------------- circles


@pytest.mark.parametrize(("limits", "times"), [({}, 5), ({"repeats": 3}, 3)])
def test_the_same_action_again_and_again(play: Player, limits: dict[str, int], times: int) -> None:
    """The same answer is carried out four times; asked for the fifth time, it ends the call."""
    played = play(solo(), talking(json.dumps(act("print", message="x"))), limits=limits)

    assert ("circles", times - 1) == (limit(played), len(played.printed))
    assert f"asked for the same `print` {times} times in a row" in played.told


def test_who_goes_round_in_circles_is_warned_first(play: Player) -> None:
    """Once, before the answer that would end the call; who does something else then goes on."""
    same, other = act("print", message="x"), act("print", message="y")
    ended, heeded = play(solo(), [same] * 9), play(solo(), [same, same, same, same, other, done()])
    warnings = [
        [message.text for message in request.messages if "Asking for it once more ends" in message.text]
        for request in ended.requests
    ]

    assert [0, 0, 0, 0, 1] == [len(each) for each in warnings]
    assert warnings[-1][0].startswith("You have asked for the same `print` 4 times in a row")
    assert (None, ("x", "x", "x", "x", "y")) == (heeded.error, heeded.printed)


def test_back_and_forth(play: Player) -> None:
    """A-B-A-B is ended when the pair comes for the third time."""
    pair = [act("print", message="a"), act("print", message="b")]
    played = play(solo(), pair * 5)

    assert ("circles", ("a", "b", "a", "b", "a")) == (limit(played), played.printed)
    assert "went back and forth between two actions 3 times" in played.told


def test_failing_the_same_way_is_a_circle(play: Player) -> None:
    """An action that fails and is asked for again counts as well; one that is not written as it has to be, twice."""
    played = play(solo("execute"), [act("shell", command="false", description="to fail", cwd="nowhere")] * 9)
    misspelt = play(solo(), [act("print")] * 9)

    assert "circles" == limit(played)
    assert "asked for the same `shell` 5 times in a row, and it failed each time; the last: shell:" in played.told
    assert "use `repeat`" not in played.told
    assert ("failures", 2) == (limit(misspelt), len(misspelt.requests))
    assert "gave up after two answers with the same mistake; the last: print: " in misspelt.told
    assert "`message` is missing" in misspelt.told


def test_one_failure_among_others_does_not_explain_a_circle(play: Player) -> None:
    """Where the action was carried out as well, a person is told how to end it."""
    played = play(solo(), [act("print"), *[act("print", message="x")] * 5])

    assert "use `repeat`" in played.told


@pytest.mark.parametrize(
    "answer", [act("prompt_user", question="more?"), {"batch": [act("prompt_user", question="?")] * 2}]
)
def test_talking_to_the_person_is_no_circle(play: Player, answer: Any) -> None:
    """The same question may be asked any number of times, for the answers are new."""
    played = play(solo(), [*[answer] * 12, done(ok=True)], host=RecordingHost(["y"] * 24))

    assert {"ok": True} == played.result


def test_different_arguments_are_no_circle(play: Player) -> None:
    """The same action with other arguments is something else."""
    assert None is play(solo(), [*(act("print", message=str(n)) for n in range(20)), done()]).error


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(("limits", "row", "pivots"), [({}, 10, 3), ({"failures": 4, "pivots": 1}, 4, 1)])
def test_failures_in_a_row(play: Player, limits: dict[str, int], row: int, pivots: int) -> None:
    """After ten failures the model is told to change its approach, three times; then the call ends."""
    answers = [act("nothing", n=n) for n in range(60)]
    played = play(solo(), answers, limits=limits)
    told = [
        number for number, text in enumerate(played.feedback) if text.startswith("Your last attempts have all failed")
    ]

    assert "failures" == limit(played)
    assert [row * (number + 1) for number in range(pivots)] == told
    assert (
        f"`Main.go` gave up after {row * (pivots + 1)} failures; the last: nothing: there is no action" in played.told
    )


def test_a_success_ends_a_row_of_failures(play: Player) -> None:
    """Only failures one after the other count."""
    failing = [act("nothing", n=n) for n in range(9)]
    answers = [*failing, act("print", message="x"), *failing, done(ok=True)]
    played = play(solo(), answers)

    assert {"ok": True} == played.result
    assert [] == [text for text in played.feedback if text.startswith("Your last attempts")]


def test_answers_that_cannot_be_read_are_failures(play: Player) -> None:
    """A model that answers without JSON twice is ended, whatever it has carried out before."""
    prose = [f"no {n}" for n in range(60)]
    never, later = play(solo(), prose), play(solo(), [act("print", message="x"), *prose])

    assert ("failures", "failures") == (limit(never), limit(later))
    assert "the last: the answer holds no action: 'no 1'" in never.told
    assert "the last: the answer holds no action: 'no 1'" in later.told


# ---------------------------------------------------------------- time


def test_a_model_that_hangs_is_ended(play: Player) -> None:
    """When the time of a playbook is up, nobody waits for the answer any longer."""

    async def speak(request: Request) -> AsyncIterator[str]:
        yield '{"intent":'
        await asyncio.Event().wait()

    played = play(solo(more="budget { time: 50ms }"), Voice(speak))

    assert "time" == limit(played)
    assert "`Main.go` took longer than its budget of 0.05 s" in played.told


def test_an_action_that_hangs_is_ended(play: Player) -> None:
    """The time counts for what a playbook does as well."""

    class Silent(RecordingHost):
        async def ask(self, question: str, options: Any = ()) -> str:
            await asyncio.Event().wait()
            return ""

    assert "time" == limit(play(solo(), [act("prompt_user", question="?")], host=Silent(), limits={"time": 0.05}))


def test_time_is_checked_before_every_turn(play: Player) -> None:
    """No request leaves after the time is up."""
    played = play(solo(more="budget { time: 20s }"), counting(), clock=Clock(2.0))

    assert "time" == limit(played)
    assert 1 <= len(played.requests) <= 10


def test_the_time_of_a_run_bounds_its_calls(play: Player) -> None:
    """A limit on the command line counts from the start of the run, for all calls together."""
    first, second = play.each(solo(), [done(), done()], [("Main.go", {})] * 2, clock=Clock(10.0), limits={"time": 45})

    assert ({}, "time") == (first.result, limit(second))
    assert "the run took longer than its budget of 45 s" in second.told
    assert "Raise `--max-time` if the run needs more." in second.told


# ---------------------------------------------------------------- tokens and money


def test_tokens(play: Player) -> None:
    """A request that has no room for its answer is not made; what was used and what is needed is told."""
    played = play(solo(more="budget { tokens: 7000 }"), counting(Usage(1000, 700)))

    assert ("tokens", 4) == (limit(played), len(played.requests))
    assert "`Main.go` has used 6800 of its 7000 tokens, and the next request takes about" in played.told
    assert "and at least 64 more for its answer" in played.told


def test_money(play: Player) -> None:
    """The same with the price of the model: of $0.134, two answers leave no more than the next request costs."""
    played = play(solo(more="budget { usd: 0.134 }"), counting(Usage(500, 8192), "gpt-4.1"))

    assert ("usd", 2) == (limit(played), len(played.requests))
    assert "`Main.go` has spent $0.1331 of its $0.134, and the next request costs about" in played.told


def test_money_of_an_unknown_price(play: Player) -> None:
    """Where the price of a model is not known, the person is told once that money bounds nothing."""
    played = play(solo(), talking(json.dumps(done())), limits={"usd": 1})
    note = "the price of `voice` is not known, so no budget in usd bounds what it takes"

    assert (None, (note,)) == (played.error, played.logged)


def test_the_first_request_may_be_too_much(play: Player) -> None:
    """A budget that not even one answer fits into is told before anything is asked."""
    played = play(solo(), [done()], limits={"tokens": 100})

    assert ("tokens", ()) == (limit(played), played.requests)
    assert "the run has used 0 of its 100 tokens, and the next request takes about" in played.told


def test_a_run_has_one_budget(play: Player) -> None:
    """A limit on the command line is for all calls together."""
    model = talking(json.dumps(done()), Usage(3000, 1000))
    calls: list[tuple[str, Any]] = [("Main.go", {})] * 3
    outcomes = play.each(solo(more="amnesia = true"), model, calls, limits={"tokens": 8200})

    assert [None, None, "tokens"] == [played.error and limit(played) for played in outcomes]


# ---------------------------------------------------------------- delegates


def helping(own: str, helpers: list[Any]) -> dict[str, list[Any]]:
    """Answers of a team: what the lead says is a list of tasks, then the end."""
    return {"Do the work": [*[ask(f"helper::{own}", {"n": n}) for n in range(3)], done(ok=True)], "Help": helpers}


def budgeted(budget: str) -> str:
    """The team whose lead has a budget."""
    return TEAM.replace("BUDGET", budget)


class Charging(Voice):
    """A scripted model that takes a thousand tokens for every answer."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__(self._answer, Usage(700, 300))
        self._answers = {key: iter(texts) for key, texts in answers.items()}

    async def _answer(self, request: Request) -> AsyncIterator[str]:
        key = next(key for key in self._answers if key in request.system + playbook_in(request))
        yield json.dumps(next(self._answers[key]))


def test_delegates_spend_the_budget_of_their_parent(play: Player) -> None:
    """What members take counts for whoever delegated; the limit of the parent ends the parent."""
    model = Charging(helping("work", [done()] * 3))
    played = play(budgeted("budget { tokens: 5300 }"), model)

    assert ("tokens", 5) == (limit(played), len(played.requests))
    assert "`Main.go` has used 5000 of its 5300 tokens" in played.told


def test_code_of_a_delegate_spends_the_budget_of_its_parent(play: Player) -> None:
    """A handler in code that asks a model is paid by the playbook that delegated to it."""
    model = Charging({**helping("think", []), "Think": ["words"] * 3})

    assert "tokens" == limit(play(budgeted("budget { tokens: 5300 }"), model))


def test_the_limit_of_a_delegate_is_a_failure_for_its_parent(play: Player) -> None:
    """A member that is ended by its own limit failed; whoever delegated hears of it and goes on."""
    answers = helping("work", [act("print", message="x")] * 15)
    played = play(budgeted(""), answers)

    assert {"ok": True} == played.result
    assert "❌ helper::work failed: `Helper.work` asked for the same `print` 5 times in a row" in played.feedback[-1]


def test_the_time_of_a_parent_bounds_its_delegates(play: Player) -> None:
    """A member that hangs is ended when the time of whoever delegated is up, and with it the parent."""

    async def speak(request: Request) -> AsyncIterator[str]:
        if "Help" in playbook_in(request):
            await asyncio.Event().wait()
        yield json.dumps(ask("helper::work"))

    played = play(budgeted("budget { time: 50ms }"), Voice(speak))

    assert "time" == limit(played)
    assert "`Main.go` took longer" in played.told
