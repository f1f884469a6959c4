"""What happens at moments that the clock decides happens one after the other, in an order that is kept."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from contextvars import Context
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from koi_lang.js.task_scope import TaskScope
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.replay.ordering import AT_ONCE, END, CompletionOrder, ReadySteps
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.limits import LIMIT_S
from tests.playbook.playing import Player

PROGRAM = """
role R { can execute }
agent Main : R { on go(x: Json) {
  for (let n = 0; n < 5; n++) {
    await new Promise(done => setTimeout(done, 1))
    await Promise.all([1, 2, 3].map(async n => await Promise.resolve(n)))
  }
} }
"""


def order_of(slots: CompletionOrder, names: Sequence[str], steps: int = 0, cancelled: Sequence[str] = ()) -> list[str]:
    """The order in which things have their slots that ask for it at the same moment, and then take some steps."""
    seen: list[str] = []

    async def one(name: str) -> None:
        await slots.take_slot(END, (name,))
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


def slots_of(names: str) -> CompletionOrder:
    """Turns that were taken in an order before."""
    return CompletionOrder([(END, (name,)) for name in names])


def test_new_slots_come_as_they_are_asked_for() -> None:
    """All that follows from one happens before the next one has its turn, however many steps it takes."""
    assert list("abcd") == order_of(CompletionOrder(), "abcd") == order_of(CompletionOrder(), "abcd", steps=40)


def test_known_slots_come_in_their_order() -> None:
    """They come as they came before, and new ones behind them."""
    assert list("cabxy") == order_of(slots_of("cab"), "xabyc", steps=3)


def test_a_turn_that_nobody_takes_is_given_up() -> None:
    """What is not asked for any more does not hold the others up for good."""
    assert list("dbx") == order_of(slots_of("adcb"), "bxd")


def test_one_that_is_ended_gives_its_turn_away() -> None:
    """Whoever is cancelled while it waits holds up nobody."""
    assert list("acd") == order_of(CompletionOrder(), "abcd", steps=5, cancelled="b")
    assert list("db") == order_of(slots_of("dacb"), "abcd", cancelled="ac")


def test_what_is_being_done_again_is_waited_for() -> None:
    """While something before is held, what comes after it is not let through, however long that takes."""
    slots, seen = slots_of("ab"), []

    async def again() -> None:
        with slots.held_for(END, ("a",)):
            await asyncio.sleep(0.05)
        await slots.take_slot(END, ("a",))
        seen.append("a")

    async def later() -> None:
        await slots.take_slot(END, ("b",))
        seen.append("b")

    async def both() -> None:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            group.create_task(again())
            group.create_task(later())

    asyncio.run(both())

    assert ["a", "b"] == seen


# ---------------------------------------------------------------- what is to be done at once


def event_loops() -> list[Any]:
    """The event loops that are there: the one of Python, and uvloop where that is installed."""
    found = importlib.util.find_spec("uvloop")
    return [asyncio.new_event_loop, *([importlib.import_module("uvloop").new_event_loop] if found else [])]


@pytest.mark.parametrize("new_loop", event_loops())
def test_a_turn_comes_when_its_run_has_nothing_else_to_do(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """What other code does in the same event loop, without end, neither delays a turn nor lets it come too early."""
    slots, seen = CompletionOrder(), []

    async def follow(steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        seen.append("followed")

    async def own() -> None:
        with slots.ready.count():
            following = asyncio.create_task(follow(30))
            await slots.take_slot(END, ("a",))
            seen.append("a")
            await following

    async def other() -> None:
        for _ in range(2000):
            await asyncio.sleep(0)

    async def both() -> object:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(own(), *(other() for _ in range(20)))
        return vars(asyncio.get_running_loop()).get("call_soon")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        left = runner.run(both())

    assert (["followed", "a"], None) == (seen, left)


@pytest.mark.parametrize("new_loop", event_loops())
def test_a_turn_of_an_idle_run_comes_at_once(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Where nothing would go on meanwhile, the event loop is not asked; where something would, that comes first."""
    slots, seen = CompletionOrder(), []

    async def take(name: str) -> None:
        asyncio.get_running_loop().call_soon(seen.append, f"loop after {name}", context=Context())
        await slots.take_slot(END, (name,))
        seen.append(name)

    async def play() -> None:
        with slots.ready.count():
            await asyncio.sleep(0)
            await take("a")
            asyncio.get_running_loop().call_soon(seen.append, "step")
            await take("b")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())

    assert ["a", "loop after a", "step", "loop after b", "b"] == seen


def test_a_caller_goes_on_before_what_it_started_has_its_turn() -> None:
    """A call that is begun at once, within the step of its caller, waits for that although nothing is ready."""
    slots, seen = CompletionOrder(), []

    async def call() -> None:
        await slots.take_slot(END, ("call",))
        seen.append("call")

    async def play() -> None:
        with slots.ready.count():
            async with TaskScope() as scope:
                await asyncio.sleep(0)
                scope.start(call())
                seen.append("caller")

    asyncio.run(play())

    assert ["caller", "call"] == seen


def test_a_task_that_is_to_be_cancelled_takes_no_turn_at_once() -> None:
    """It ends where it waits next, and takes nothing up before."""
    slots = CompletionOrder()

    async def play() -> None:
        with slots.ready.count():
            await asyncio.sleep(0)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await slots.take_slot(END, ("a",))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(play())


def test_slots_in_a_row_leave_the_event_loop_time() -> None:
    """Code that never waits for anything does not keep others from what they do."""
    slots, seen = CompletionOrder(), []

    async def play() -> None:
        with slots.ready.count():
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(seen.append, True, context=Context())
            for number in range(2 * AT_ONCE):
                await slots.take_slot(END, (str(number),))
            assert seen

    asyncio.run(play())


def test_a_step_that_was_cancelled_is_not_waited_for() -> None:
    """A callback that will not be called any more does not keep a run busy."""
    ready = ReadySteps()

    async def schedule() -> list[bool]:
        with ready.count():
            handle = asyncio.get_running_loop().call_soon(print)
            before = ready.is_empty
            handle.cancel()
            return [before, ready.is_empty]

    assert [False, True] == asyncio.run(schedule())


async def run_recorded(module: ModuleType, folder: Path) -> None:
    """One run whose order is kept."""
    services = Services(connect=lambda llm: ScriptedModel([]), folder=folder, detailed=True)
    async with Run(services) as run:
        await run.call(module.Main, "go", {})


def test_many_runs_at_once_cost_what_they_cost_one_by_one(play: Player) -> None:
    """The journal of a run asks nothing of the others: of 300 at once none takes more steps than the only one."""
    module = play.load(PROGRAM)

    async def watched(count: int) -> int:
        looks = 0

        def counted(slots: CompletionOrder) -> None:
            nonlocal looks
            looks += 1
            watch(slots)

        watch = CompletionOrder._watch
        with mock.patch.object(CompletionOrder, "_watch", counted):
            await asyncio.gather(*(run_recorded(module, play.folder) for _ in range(count)))
        return looks

    one, many = asyncio.run(watched(1)), asyncio.run(watched(300))

    assert many <= 2 * 300 * one
