"""Random trees of delegates, a lying provider, failures, retries, cancellations: budgets hold, and sums agree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from koi_lang.cli.ui.reporters import CostMeter
from koi_lang.errors import RequestError
from koi_lang.llm.messages import Delta, Discarded, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.retry import retry
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.budget.limits import BudgetAccount, LimitReachedError, current_spending
from koi_lang.runtime.journal.entries import entry_of
from koi_lang.runtime.journal.totals import UsageTotals
from tests.playbook.playing import Played, Player, act, ask, done, playbook_in

AGENTS = 4
SEEDS = range(24)


def tree(random: Random) -> str:
    """A program whose agents delegate to those behind them, in playbooks and in code, each perhaps with a budget."""
    agents = []
    for n in range(AGENTS):
        budget = random.choice(["", f"budget {{ tokens: {random.randint(2, 12) * 1000} }}", "budget { usd: 0.02 }"])
        tries = random.choice(["", f'resilience "play{n}" {{ retry_max_attempts = 2, retry_delay = 0 }}'])
        below = range(n + 1, AGENTS)
        jobs = ", ".join(f'A{m}.handle("{random.choice(["play", "code"])}{m}", {{}})' for m in below)
        wait = f'try {{ await send T.event("play{n + 1}").any()({{}}) timeout 5ms }} catch (e) {{}}' if below else ""
        late = random.choice(["", wait])
        agents.append(
            f"agent A{n} : Lead {{ uses team T  amnesia = true  {budget}  {tries}\n"
            f'  on play{n}(args) {{ playbook "A{n}." }}\n'
            f"  on code{n}(args) {{ {late}\n    return (await Promise.allSettled([{jobs}])).length }}\n}}\n"
        )
    members = ", ".join(f"a{n}: A{n}" for n in range(AGENTS))
    return f"role Lead {{ can delegate, can execute }}\nteam T {{ {members} }}\n{''.join(agents)}"


class Liar:
    """A model that counts between a tenth and three times of what is to be expected, fails, and takes its time.

    Args:
        honest: whether it keeps to what was reserved.

    Attributes:
        payers: everybody who has paid for a request.
        wrong: what was reserved with somebody beyond their budget.
    """

    provider, model = "a", "gpt-4o-mini"

    def __init__(self, random: Random, *, honest: bool) -> None:
        self._random, self._honest = random, honest
        self.requests: list[Request] = []
        self.payers: set[BudgetAccount] = set()
        self.wrong: list[str] = []

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Look at the reservations, then answer in some way."""
        self.requests.append(request)
        self._look()
        usage, chance = self._usage(request), self._random.random()
        for _ in range(self._random.randint(0, 4)):
            await asyncio.sleep(0)
        if chance < 0.1:
            await asyncio.sleep(0.02)
        if chance > 0.85:
            failure = RequestError("it called a tool")
            failure.discarded = Discarded(usage)
            raise failure
        yield TextDelta(json.dumps(self._answer(request)))
        yield StreamEnd(usage, "stop")

    def _look(self) -> None:
        payer = current_spending()
        assert payer is not None
        for each in payer.payers():
            self.payers.add(each)
            tokens, usd = sum(one.tokens for one in each.open), sum(one.usd for one in each.open)
            if each.budget.tokens is not None and tokens > each.budget.tokens:
                self.wrong.append(f"{each.what}: {tokens} of {each.budget.tokens}")
            if each.budget.usd is not None and usd > each.budget.usd + 1e-9:
                self.wrong.append(f"{each.what}: ${usd} of ${each.budget.usd}")

    def _usage(self, request: Request) -> Usage:
        read, written = tokens_of(request.messages, request.system), self._random.randint(1, 800)
        if self._honest:
            return Usage(read, min(written * 4, request.max_tokens or written))
        times = self._random.uniform(0.1, 3)
        return Usage(int(read * times), int(written * times))

    def _answer(self, request: Request) -> Any:
        n, turns = int(playbook_in(request)[1]), sum(message.role == "assistant" for message in request.messages)
        if turns >= self._random.randint(0, 2) or n + 1 >= AGENTS:
            return done(n=n)
        jobs = [ask(f"a{m}::{self._random.choice(['play', 'code'])}{m}", {"m": m}) for m in range(n + 1, AGENTS)]
        return {self._random.choice(["batch", "parallel"]): [*jobs, act("print", message=f"{n}.{turns}")]}

    async def aclose(self) -> None:
        """Nothing is held."""


async def at_once(seconds: float) -> None:
    """Do not wait between attempts."""


def played(play: Player, seed: int, *, honest: bool) -> tuple[Played, Liar, dict[str, int]]:
    """What comes of a tree, and who has paid for it."""
    random = Random(seed)
    source, liar = tree(random), Liar(random, honest=honest)
    limits = {"tokens": random.randint(5, 60) * 1000, "concurrency": random.randint(1, 6), "repeats": 99}
    model: Any = retry(liar, sleep=at_once)
    model.requests = liar.requests
    call = random.choice(["A0.play0", "A0.code0"])
    return play(source, model, call=call, limits=limits, detailed=True), liar, limits


def sums(done: Played) -> set[tuple[int, int]]:
    """Tokens and requests as the budget of the run, the bill and the journal have them."""
    bill, journal = CostMeter(), UsageTotals()
    for n, event in enumerate(done.events, 1):
        bill(event)
        journal.add_entry(entry_of(event, n))
    spent = done.run.spending
    return {
        (spent.tokens, spent.requests),
        (bill.usage.tokens, bill.usage.requests),
        (journal.tokens, journal.requests),
    }


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_provider_that_lies(play: Player, seed: int) -> None:
    """What is reserved never exceeds a budget of anybody above, all of it is given back, and all sums agree."""
    came, liar, _ = played(play, seed, honest=False)

    assert [] == liar.wrong
    assert [] == [each.what for each in liar.payers if each.open or each.waiting]
    assert 1 == len(sums(came)), sums(came)
    assert came.error is None or isinstance(came.error, (LimitReachedError, RequestError)), came.told


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_provider_that_keeps_to_the_limits(play: Player, seed: int) -> None:
    """Nobody spends more than their budget, however many ask at once."""
    came, liar, limits = played(play, seed, honest=True)

    assert came.run.spending.tokens <= limits["tokens"]
    assert [] == [each.what for each in liar.payers if each.overspent() or each.open]
    assert 1 == len(sums(came)), sums(came)
