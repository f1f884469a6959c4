"""Room in budgets is reserved, waited for in order, and given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from koi_lang.llm.usage import Calibration, Estimate
from koi_lang.runtime.budget.limits import Budget, BudgetAccount, LimitReachedError, Reservation
from koi_lang.runtime.budget.reservations import Reservations
from tests.limits import LIMIT_S

Asked = asyncio.Task[Reservation]


def call(tokens: int | None = None, outer: BudgetAccount | None = None, **limits: Any) -> BudgetAccount:
    """A call with a budget."""
    return BudgetAccount(Budget(tokens, **limits), "`A.go`" if outer else "the run", time.monotonic, outer)


def need(tokens: int, least: int = 10) -> Estimate:
    """A request of 10 tokens with an answer of so many, at $0.01 for each of these."""
    return Estimate(10, tokens, least, 0.0, 0.01)


async def settled(rounds: int = 5) -> None:
    """Let everybody go on who can."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def asking(room: Reservations, payer: BudgetAccount, tokens: int = 90) -> Asked:
    """A request on its way to a reservation."""
    return asyncio.create_task(room.reserve(payer, need(tokens)))


def states(*asked: Asked) -> str:
    """A letter for each request: w(aits), r(eserved), n(ot allowed)."""
    return "".join("w" if not each.done() else "n" if each.exception() else "r" for each in asked)


def run(scene: Coroutine[Any, Any, None]) -> None:
    """Play a scene; one that waits for ever fails."""

    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scene

    asyncio.run(limited())


def test_what_does_not_fit_beside_others_waits() -> None:
    """Two of 100 tokens fit into 250, the third waits for one of them, and takes what is left then."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(250)
        first, second, third = (asking(room, payer) for _ in range(3))
        await settled()
        assert "rrw" == states(first, second, third)

        room.settle(first.result(), 160)
        await settled()
        assert "rrw" == states(first, second, third)

        room.settle(second.result(), 50)
        assert (30, payer) == ((await third).answer_tokens, third.result().limited_by)
        room.settle(third.result(), 40)
        assert (250, 0) == (payer.tokens, len(payer.open))

    run(scene())


def test_what_fits_nowhere_is_refused_with_the_numbers() -> None:
    """Nobody waits for room that will never be there; one who waits is refused as soon as that is known."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(120)
        first, second = asking(room, payer), asking(room, payer)
        await settled()
        room.settle(first.result(), 101)
        with pytest.raises(LimitReachedError) as refused:
            await second
        numbers = "has used 101 of its 120 tokens, and the next request takes about 10 and at least 10 more"
        assert numbers in refused.value.message

    run(scene())


def test_everybody_above_has_to_have_room() -> None:
    """A call reserves with whoever called it, too; the outermost that refuses is named."""

    async def scene() -> None:
        room, top = Reservations(Calibration()), call(150)
        left, right = call(1000, top), call(1000, top)
        first, second = asking(room, left), asking(room, right)
        await settled()
        assert "rw" == states(first, second)
        assert [100, 100, 0] == [sum(each.tokens for each in payer.open) for payer in (top, left, right)]
        room.settle(first.result(), 140)
        with pytest.raises(LimitReachedError, match="the run has used 140 of its 150"):
            await second

    run(scene())


def test_money_is_reserved_too() -> None:
    """Of $2, two answers of 90 tokens at a cent each fit in, and 20 tokens of the third remain."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(usd=2.0)
        first, second, third = (asking(room, payer) for _ in range(3))
        await settled()
        assert "rrw" == states(first, second, third)
        room.settle(first.result(), 100, 0.9)
        room.settle(second.result(), 100, 0.9)
        assert 20 == (await third).answer_tokens

    run(scene())


# ---------------------------------------------------------------- order


def test_the_longest_waiting_goes_first() -> None:
    """A small request does not overtake a large one that waits for the same room."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(200)
        first, large, small = asking(room, payer), asking(room, payer, 150), asking(room, payer, 20)
        await settled()
        assert "rww" == states(first, large, small)
        room.settle(first.result(), 5)
        await settled()
        assert "rrr" == states(first, large, small)

    run(scene())


def test_who_waits_for_other_room_is_passed() -> None:
    """Whoever waits for the budget of one call is in the way of that call only."""

    async def scene() -> None:
        room, top = Reservations(Calibration()), call(1000)
        tight, free = call(100, top), call(None, top)
        first, second, other = asking(room, tight), asking(room, tight), asking(room, free)
        await settled()
        assert "rwr" == states(first, second, other)

    run(scene())


def test_so_many_requests_are_on_their_way_at_once() -> None:
    """Without any budget, too, the next one goes when one has been answered."""

    async def scene() -> None:
        room, payer = Reservations(Calibration(), 2), call()
        asked = [asking(room, payer) for _ in range(5)]
        await settled()
        assert "rrwww" == states(*asked)
        room.settle(asked[1].result(), 1)
        await settled()
        assert "rrrww" == states(*asked)

    run(scene())


def test_nobody_is_forgotten_where_room_moves() -> None:
    """Those that wait for a call, then for the run, then for an answer, have their turn in the end, each once."""

    async def scene() -> None:
        room, top = Reservations(Calibration(), 3), call(100_000)
        calls = [call(220, top), call(330, top), call(None, top)]
        order: list[int] = []

        async def ask(n: int) -> None:
            reservation = await room.reserve(calls[n % 3], need(90 if n % 4 else 20))
            order.append(n)
            await settled(1 + n % 3)
            room.settle(reservation, 2)

        await asyncio.gather(*(ask(n) for n in range(60)))
        assert list(range(60)) == sorted(order)
        assert [0, 0, 0, 0] == [len(payer.open) + len(payer.waiting) for payer in (top, *calls)]

    run(scene())


def test_waiting_takes_time_in_proportion() -> None:
    """Eight times as many requests that wait for two budgets at once take about eight times as long."""

    async def scene(count: int) -> None:
        room, top = Reservations(Calibration(), 32), call(3300)
        payer = call(3300, top)

        async def ask() -> None:
            reservation = await room.reserve(payer, need(90))
            await asyncio.sleep(0)
            room.settle(reservation)

        await asyncio.gather(*(ask() for _ in range(count)))

    def seconds(count: int) -> float:
        started = time.process_time()
        run(scene(count))
        return time.process_time() - started

    assert min(seconds(4000) for _ in range(3)) < 20 * min(seconds(500) for _ in range(3)) + 0.2


# ---------------------------------------------------------------- giving up


def test_one_that_is_cancelled_while_it_waits_is_in_nobodys_way() -> None:
    """Behind a large request that is given up, a small one goes at once."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(200)
        first, large, small = asking(room, payer), asking(room, payer, 190), asking(room, payer, 20)
        await settled()
        large.cancel()
        await settled()
        assert "r" == states(small)
        assert (130, 2) == (sum(each.tokens for each in payer.open), payer.requests)
        room.settle(first.result())

    run(scene())


def test_one_that_is_cancelled_just_when_it_may_go_gives_its_room_back() -> None:
    """Between being let go and hearing of it nothing is lost."""

    async def scene() -> None:
        room, payer = Reservations(Calibration()), call(100)
        first, second, third = (asking(room, payer) for _ in range(3))
        await settled()
        room.settle(first.result())
        second.cancel()
        await settled()
        assert second.cancelled()
        assert ("r", 100, 2) == (states(third), sum(each.tokens for each in payer.open), payer.requests)

    run(scene())


@pytest.mark.parametrize("cancelled", [0, 1, 2, 3])
def test_whoever_is_cancelled_the_others_go(cancelled: int) -> None:
    """With a run that is full and a call that is full, giving up any of those that wait leaves none behind."""

    async def scene() -> None:
        room, top = Reservations(Calibration(), 2), call(250)
        payers = [call(150, top), top, call(150, top)]
        held = [asking(room, payers[0]), asking(room, payers[1])]
        waiting = [asking(room, payers[n % 3], 60) for n in range(4)]
        await settled()
        waiting.pop(cancelled).cancel()
        for each in held:
            room.settle(each.result())
        for each in waiting:
            room.settle(await each)
        assert 0 == len(top.open)

    run(scene())
