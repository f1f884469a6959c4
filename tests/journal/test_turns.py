"""What happens at moments that the clock decides happens one after the other, in an order that is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from koi_lang.runtime.turns import END, Turns

LIMIT_S = 10.0


def order_of(turns: Turns, names: Sequence[str], steps: int = 0, cancelled: Sequence[str] = ()) -> list[str]:
    """The order in which things have their turns that ask for it at the same moment, and then take some steps."""
    seen: list[str] = []

    async def one(name: str) -> None:
        await turns.take(END, (name,))
        for _ in range(steps):
            await asyncio.sleep(0)
        seen.append(name)

    async def all_of_them() -> None:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(one(name)) for name in names}
            await asyncio.sleep(0)
            for name in cancelled:
                tasks[name].cancel()

    asyncio.run(all_of_them())
    return seen


def turns_of(names: str) -> Turns:
    """Turns that were taken in an order before."""
    return Turns([(END, (name,)) for name in names])


def test_new_turns_come_as_they_are_asked_for() -> None:
    """All that follows from one happens before the next one has its turn, however many steps it takes."""
    assert list("abcd") == order_of(Turns(), "abcd") == order_of(Turns(), "abcd", steps=40)


def test_known_turns_come_in_their_order() -> None:
    """They come as they came before, and new ones behind them."""
    assert list("cabxy") == order_of(turns_of("cab"), "xabyc", steps=3)


def test_a_turn_that_nobody_takes_is_given_up() -> None:
    """What is not asked for any more does not hold the others up for good."""
    assert list("dbx") == order_of(turns_of("adcb"), "bxd")


def test_one_that_is_ended_gives_its_turn_away() -> None:
    """Whoever is cancelled while it waits holds up nobody."""
    assert list("acd") == order_of(Turns(), "abcd", steps=5, cancelled="b")
    assert list("db") == order_of(turns_of("dacb"), "abcd", cancelled="ac")


def test_what_is_being_done_again_is_waited_for() -> None:
    """While something before is held, what comes after it is not let through, however long that takes."""
    turns, seen = turns_of("ab"), []

    async def again() -> None:
        with turns.held():
            await asyncio.sleep(0.05)
        await turns.take(END, ("a",))
        seen.append("a")

    async def later() -> None:
        await turns.take(END, ("b",))
        seen.append("b")

    async def both() -> None:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            group.create_task(again())
            group.create_task(later())

    asyncio.run(both())

    assert ["a", "b"] == seen
