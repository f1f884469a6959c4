"""Budgets hold, also with many requests at once: room is reserved before a request leaves, and waited for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from koi_lang.errors import AnswerTooLongError
from koi_lang.events import AnswerDiscarded
from koi_lang.llm.messages import Delta, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.usage import Candidate, tokens_of
from koi_lang.runtime.budget.limits import LimitReachedError
from tests.playbook.playing import Played, Player, act, ask, done, playbook_in, solo

TEAM = """
role Lead {{ can delegate, can execute }}
agent Helper : Lead {{ amnesia = true  on work(args) {{ playbook "Help." }} }}
team Crew {{ helper: Helper }}
agent Main : Lead {{
  uses team Crew
  {budget}
  on go(args) {{ playbook "Lead." }}
  on code(args) {{
    const jobs = Array.from({{ length: args.jobs }}, (_, n) => Helper.handle("work", {{ n }}))
    const ended = await Promise.allSettled(jobs)
    return ended.filter(job => job.status == "fulfilled").length
  }}
}}
"""


@dataclass(slots=True)
class Provider:
    """A model that keeps to `max_tokens`, and writes as much as it is asked to.

    Attributes:
        answer: what it says to a request.
        tokens: how long it makes each answer of a helper, if it may.
        times: how many times it counts what it reads.
        open: what the requests on their way can take at most; `most` of it at once, with all that was billed before.
    """

    answer: Callable[[Request], Any]
    tokens: int = 4000
    name: str = "voice"
    times: int = 1
    candidates: Sequence[Candidate] = ()
    requests: list[Request] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    billed: int = 0
    most: int = 0
    at_once: int = 0

    @property
    def provider(self) -> str:
        """Its name."""
        return self.name

    model = provider

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Write for a while, then end."""
        self.requests.append(request)
        read = self.times * tokens_of(request.messages, request.system)
        helps = "Help." in playbook_in(request)
        written = min(self.tokens if helps else 50, request.max_tokens or 100_000)
        key = len(self.requests)
        self.open[key] = read + (request.max_tokens or 4096)
        self.at_once = max(self.at_once, len(self.open))
        self.most = max(self.most, self.billed + sum(self.open.values()))
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            yield TextDelta(json.dumps(self.answer(request)))
        finally:
            del self.open[key]
            self.billed += read + written
        yield StreamEnd(Usage(read, written), "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


def helpers(jobs: int) -> Provider:
    """A lead that has so many jobs done at once."""
    group = {"parallel": [ask("helper::work", {"n": n}) for n in range(jobs)]}
    return Provider(
        lambda request: done(ok=True) if "Help." in playbook_in(request) else [group, done(ok=1)][_turn(request)]
    )


def _turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def team(budget: str) -> str:
    """The team whose lead has a budget."""
    return TEAM.format(budget=budget)


def limit_of(played: Played) -> str:
    """Which limit ended a call."""
    assert isinstance(played.error, LimitReachedError), played.told or played.result
    return f"{played.error.what}: {played.error.limit}"


# ---------------------------------------------------------------- many at once


@pytest.mark.parametrize("jobs", [8, 20])
def test_parallel_delegates_stay_within_the_budget(play: Player, jobs: int) -> None:
    """Of 12,000 tokens, two helpers take what they like, a third what is left, and no other is asked."""
    provider = helpers(jobs)
    played = play(team("budget { tokens: 12000 }"), provider)

    assert "`Main.go`: tokens" == limit_of(played)
    assert 11_900 < provider.most <= 12_000
    assert 11_000 < played.run.spending.tokens == provider.billed <= 12_000


def test_parallel_delegates_stay_within_an_amount(play: Player) -> None:
    """The same in dollars: ten cents pay for three answers of 4,000 tokens of gpt-4.1."""
    provider = helpers(8)
    provider.name = "gpt-4.1"
    played = play(team("budget { usd: 0.1 }"), provider)

    assert "`Main.go`: usd" == limit_of(played)
    assert 0.08 < played.run.spending.usd <= 0.1


@pytest.mark.parametrize("jobs", [8, 20])
def test_code_stays_within_the_budget_of_its_agent(play: Player, jobs: int) -> None:
    """`Promise.all` in a handler of code is bounded by the agent's budget as a group of a playbook is."""
    provider = helpers(jobs)
    played = play(team("budget { tokens: 12000 }"), provider, call="Main.code", payload={"jobs": jobs})

    assert "`Main.code`: tokens" == limit_of(played)
    assert 11_000 < provider.billed <= provider.most <= 12_000


def test_parallel_delegates_stay_within_the_budget_of_the_run(play: Player) -> None:
    """What the command line says bounds all calls together."""
    provider = helpers(8)

    assert "the run: tokens" == limit_of(play(team(""), provider, limits={"tokens": 12_000}))
    assert 11_000 < provider.billed <= provider.most <= 12_000


def test_where_there_is_room_nobody_waits(play: Player) -> None:
    """A budget that is large enough takes nothing of what happens at the same time."""
    provider = helpers(8)
    played = play(team("budget { tokens: 100000 }"), provider)

    assert ({"ok": 1}, 8, True) == (played.result, provider.at_once, provider.billed < 100_000)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("limits", "most"), [({}, 32), ({"concurrency": 5}, 5)])
def test_many_delegates_are_not_as_many_requests_at_once(
    play: Player, limits: dict[str, int], most: int, count: int
) -> None:
    """So many requests of a run are on their way at once, 32 unless something else is said; all are made."""
    provider = helpers(count)
    played = play(team(""), provider, limits=limits)

    assert ({"ok": 1}, most, count + 2) == (played.result, provider.at_once, len(provider.requests))


# ---------------------------------------------------------------- nobody waits in a circle

NEST = """
role Lead {{ can delegate }}
agent A : Lead {{ uses team T  on a(args) {{ playbook "A." }} }}
agent B : Lead {{ uses team T  on b(args) {{ playbook "B." }} }}
agent C : Lead {{ uses team T  on c(args) {{ playbook "C." }} }}
team T {{ b: B, c: C }}
agent Main : Lead {{
  uses team T
  on go(args) {{ return await Promise.all([{calls}].map(n => A.handle("a", {{ n }}))) }}
}}
"""


class Nested:
    """A model whose answers go on after the delegates that they ask for, for as long as others write nothing."""

    provider = model = "nested"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Ask the next level twice, write on, then return."""
        self.requests.append(request)
        below = {"A.": "b::b", "B.": "c::c"}.get(playbook_in(request)[:2])
        group = {"parallel": [ask(below), ask(below)]} if below else None
        if group is None or _turn(request):
            yield TextDelta(json.dumps(done(ok=True)))
        else:
            yield TextDelta(json.dumps(group))
            await asyncio.sleep(0.005)  # its delegates want to be asked meanwhile
            yield TextDelta("\n")
        yield StreamEnd(Usage(400, 100), "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize("limits", [{"concurrency": 1}, {"tokens": 100_000, "concurrency": 2}, {"tokens": 60_000}])
def test_nested_groups_do_not_wait_in_a_circle(play: Player, limits: dict[str, int]) -> None:
    """Delegates wait for the end of the answer that started them, and that waits for nobody."""
    played = play(NEST.format(calls="1, 2, 3"), Nested(), limits=limits)

    assert ([{"ok": True}] * 3, 3 * (2 + 2 * 2 + 4)) == (played.result, len(played.requests))


def test_an_answer_is_settled_when_it_has_been_written(play: Player) -> None:
    """A delegate is asked with what the answer of its lead has left, while its action is still being carried out."""
    provider = helpers(1)
    played = play(team("budget { tokens: 6500 }"), provider)
    lead, helper = provider.requests[0], provider.requests[1]

    assert (None, {"ok": 1}) == (lead.max_tokens, played.result)
    assert helper.max_tokens is None or helper.max_tokens > 4000


def test_a_model_that_counts_more_is_reckoned_with(play: Player) -> None:
    """What it has counted once bounds what later requests are given, those that have waited for room included."""
    provider = helpers(8)
    provider.times, provider.tokens = 3, 1000
    played = play(team("budget { tokens: 12000 }"), provider)

    assert "`Main.go`: tokens" == limit_of(played)
    assert 9_000 < played.run.spending.tokens == provider.billed <= 12_000


# ---------------------------------------------------------------- what is left


def chatty(declared: int | None = None, name: str = "voice") -> Provider:
    """A model that prints another number with every answer of 50 tokens, and may be told a limit by its connection."""
    numbers = iter(range(1000))
    return Provider(
        lambda request: act("print", message=next(numbers)), name=name, candidates=(Candidate(name, declared),)
    )


@pytest.mark.parametrize("declared", [None, 20_000])
def test_what_a_small_budget_leaves_is_sent(play: Player, declared: int | None) -> None:
    """Of 3,000 tokens the first request leaves some 2,800 for its answer, and each further one less."""
    provider = chatty(declared)
    played = play(solo(), provider, limits={"tokens": 3000})
    limits = [request.max_tokens or 0 for request in provider.requests]

    assert "the run: tokens" == limit_of(played)
    assert limits == sorted(limits, reverse=True)
    assert (2700 < limits[0] < 2900, limits[-1] >= 64, provider.most <= 3000) == (True, True, True)


@pytest.mark.parametrize("declared", [100, 30])
def test_what_is_declared_is_enough(play: Player, declared: int) -> None:
    """With `max_tokens: 100` a budget of 3,000 tokens is not too small, and nobody is told more than is declared."""
    provider = chatty(declared)
    play(solo(), provider, limits={"tokens": 3000, "turns": 3})

    assert [None] * 3 == [request.max_tokens for request in provider.requests if not request.is_report]


def test_a_model_with_a_card_is_held_to_what_is_reserved(play: Player) -> None:
    """Where nothing is declared, a budget makes sure that the answer is no longer than what was reckoned with."""
    provider = chatty(name="gpt-4o-mini")
    play(solo(), provider, limits={"usd": 5, "turns": 2})
    free = chatty(name="gpt-4o-mini")
    play(solo(), free, limits={"turns": 2})

    limits = [[each.max_tokens for each in model.requests if not each.is_report] for model in (provider, free)]
    assert [[8192] * 2, [None] * 2] == limits


def test_less_than_64_tokens_are_not_worth_asking_for(play: Player) -> None:
    """A request that would leave 63 tokens for its answer is refused with the numbers, one that leaves 64 is made."""
    first = chatty()
    play(solo(), first, limits={"tokens": 3000})
    read = 3000 - (first.requests[0].max_tokens or 0)

    refused, made = play(solo(), chatty(), limits={"tokens": read + 63}), chatty()
    play(solo(), made, limits={"tokens": read + 64})
    assert f"used 0 of its {read + 63} tokens, and the next request takes about {read} and at least 64" in refused.told
    assert ([], [64]) == ([*refused.requests], [request.max_tokens for request in made.requests])


def test_an_answer_that_needed_more_than_was_left_is_a_matter_of_the_budget(play: Player) -> None:
    """A model that thinks until its tokens are used up is not told to be given more `max_tokens`."""
    failure = AnswerTooLongError("it reached its limit of tokens", help="Raise `max_tokens`.")

    class Thinker(Provider):
        async def __call__(self, request: Request) -> AsyncIterator[Delta]:
            self.requests.append(request)
            raise failure
            yield TextDelta("")

    played = play(solo(more="budget { tokens: 1500 }"), Thinker(done))
    assert "`Main.go`: tokens" == limit_of(played)
    assert "tokens that were left for an answer were too few" in played.told
    assert "tokens: N }` or `--max-tokens`" in played.told


# ---------------------------------------------------------------- what is given up


def test_who_is_not_waited_for_gives_its_room_back(play: Player) -> None:
    """What was reserved for a delegate whose time was up is there for the next."""
    race = """
      on race(args) {
        try { await send peers.event("work").any()({ n: 1 }) timeout 20ms } catch (late) {}
        return await Helper.handle("work", { n: 2 })
      }"""
    hang = asyncio.Event()

    class Slow(Provider):
        async def __call__(self, request: Request) -> AsyncIterator[Delta]:
            self.requests.append(request)
            if len(self.requests) == 1:
                await hang.wait()
            yield TextDelta(json.dumps(done(ok=True)))
            yield StreamEnd(Usage(300, 100), "stop")

    source = team("budget { tokens: 5000 }").replace("  on code", f"{race}\n  on code")
    played = play(source, Slow(done), call="Main.race")
    (lost,) = [event.fields["tokens"]["input"] for event in played.events if event.type == AnswerDiscarded.type]

    assert ({"ok": True}, 400 + lost) == (played.result, played.run.spending.tokens)
    assert not played.run.spending.open
