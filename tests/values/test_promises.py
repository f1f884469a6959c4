"""Promises, timers, and the scope they live in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.js.call_helpers import call, get, invoke, new
from koi_lang.js.errors import ErrorValue, Thrown, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.promises import Promise, TaskScope, settle, spawn
from koi_lang.js.undefined import undefined
from tests.growth import MOST_GROWTH, growth

PROMISE = GLOBALS["Promise"]
set_timeout: Any = GLOBALS["setTimeout"]


def run(program: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """The result of a program that runs in a scope."""

    async def scoped() -> Any:
        async with TaskScope():
            return await program()

    return asyncio.run(scoped())


async def fails() -> None:
    """An asynchronous function that throws."""
    raise ErrorValue("boom")


async def never() -> None:
    """An asynchronous function that does not end by itself."""
    await asyncio.get_running_loop().create_future()


def later(value: Any, turns: int = 1) -> Promise:
    """A promise that is fulfilled after some turns of the event loop."""

    async def wait() -> Any:
        for _ in range(turns):
            await asyncio.sleep(0)
        return value

    return spawn(wait())


def test_an_asynchronous_function_runs_up_to_its_first_wait() -> None:
    """A call runs at once; what follows the wait comes after what follows the call."""
    order: list[str] = []

    async def work(name: str) -> None:
        order.append(f"{name} begins")
        await settle(invoke(PROMISE, "resolve", 1))
        order.append(f"{name} goes on")

    async def program() -> None:
        first, second = call(work, "a"), call(work, "b")
        order.append("called")
        await first
        await second

    run(program)

    assert order == ["a begins", "b begins", "called", "a goes on", "b goes on"]


def test_a_timeout_around_the_first_step_ends_only_that_call() -> None:
    """The first step belongs to the task of the call, so its time limits do too."""

    async def limited() -> None:
        async with asyncio.timeout(0.001):
            await never()

    async def program() -> list[str]:
        promise = call(limited)
        done = await settle(invoke(PROMISE, "allSettled", [promise]))
        return [done[0]["status"], done[0]["reason"].name]

    assert run(program) == ["rejected", "TimeoutError"]


def test_cancelling_does_not_reach_a_call_that_has_ended() -> None:
    """A call that came to its end in its first step keeps its value, or its error, when its scope is cancelled."""
    promises: list[Promise] = []

    async def program() -> None:
        async def gives() -> str:
            return "done"

        promises.extend((call(gives), call(fails)))
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(program)

    (given, value), (_, error) = (promise.state for promise in promises)
    assert ("fulfilled", "done", "boom") == (given, value, error.message)


def test_rejections_that_nobody_handles_cost_no_more_when_there_are_many() -> None:
    """Each call that fails is looked at once, however many have failed before."""

    def many(count: int) -> Callable[[], None]:
        async def program() -> None:
            for _ in range(count):
                call(fails)

        def failing() -> None:
            with pytest.raises(ErrorValue):
                run(program)

        return failing

    assert growth(many, 100) < MOST_GROWTH


def test_several_waiters_of_one_promise_all_get_its_value() -> None:
    """Calls that wait for the same promise in their first step do not disturb each other."""

    async def program() -> Any:
        shared = later("x", 3)

        async def wait() -> Any:
            return await shared

        return await settle(invoke(PROMISE, "all", [call(wait), call(wait), shared]))

    assert run(program) == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), (None, None), ({"then": 1}, {"then": 1}), ({"then": lambda resolve: resolve(7)}, 7)],
)
def test_settling_what_is_no_promise(value: Any, expected: Any) -> None:
    """Values are themselves; an object with a `then` method is asked for its value."""

    async def program() -> Any:
        return await settle(value)

    assert expected == run(program)


def test_settling_unwraps_promises_of_promises() -> None:
    """An asynchronous function that returns a promise is waited for to the end."""

    async def outer() -> Any:
        return later(9)

    async def program() -> list[Any]:
        return [await settle(outer()), await settle(call(outer)), await settle(new(PROMISE, lambda r: r(later(9))))]

    assert run(program) == [9, 9, 9]


def test_then_catch_and_finally() -> None:
    """Each gives a promise of what its callback makes of the outcome."""
    order: list[Any] = []

    async def program() -> list[Any]:
        fine = invoke(later(2), "then", lambda n: n * 10)
        failed = invoke(call(fails), "catch", lambda error: get(error, "message"))
        both = invoke(call(fails), "then", undefined, lambda error: "second")
        last = invoke(later(1), "finally", lambda: order.append("finally"))
        order.append("callbacks come later")
        return [await fine, await failed, await both, await last]

    assert (run(program), order) == ([20, "boom", "second", 1], ["callbacks come later", "finally"])


def test_all_gives_the_values_in_order() -> None:
    """The order is that of the promises, not that in which they end."""

    async def program() -> Any:
        return await settle(invoke(PROMISE, "all", [later(1, 5), 2, later(3)]))

    assert run(program) == [1, 2, 3]


def test_all_fails_with_the_first_failure() -> None:
    """It does not wait for the others."""

    async def program() -> Any:
        await settle(invoke(PROMISE, "all", [new(PROMISE, lambda resolve: None), call(fails)]))

    with pytest.raises(ErrorValue, match="boom"):
        run(program)


def test_all_settled_tells_every_outcome() -> None:
    """Failures are values, and nobody has to handle them."""

    async def program() -> Any:
        return inspect(await settle(invoke(PROMISE, "allSettled", [call(fails), 1])))

    expected = "[\n  { status: 'rejected', reason: [Error: boom] },\n  { status: 'fulfilled', value: 1 }\n]"

    assert expected == run(program)


def test_race_and_any() -> None:
    """A race is decided by the first outcome, `any` by the first success."""

    async def program() -> list[Any]:
        race = invoke(PROMISE, "race", [later("slow", 9), later("fast")])
        first = invoke(PROMISE, "any", [call(fails), later("good", 3)])
        return [await settle(race), await settle(first)]

    assert run(program) == ["fast", "good"]


def test_any_without_a_success_tells_all_errors() -> None:
    """It is rejected with an AggregateError."""

    async def program() -> Any:
        result = await settle(invoke(PROMISE, "allSettled", [invoke(PROMISE, "any", [call(fails), call(fails)])]))
        return inspect(result[0]["reason"])

    expected = "AggregateError: All promises were rejected {\n  [errors]: [ [Error: boom], [Error: boom] ]\n}"

    assert expected == run(program)


def test_only_the_first_outcome_of_an_executor_counts() -> None:
    """Later calls are ignored, and so is an error thrown after them."""

    def executor(resolve: Any, reject: Any) -> None:
        resolve(1)
        reject("no")
        raise ErrorValue("ignored")

    async def program() -> Any:
        return await new(PROMISE, executor)

    assert run(program) == 1


def test_an_executor_that_throws_rejects() -> None:
    """Any value may be the reason."""

    def executor() -> None:
        raise Thrown("text")

    async def program() -> Any:
        return await settle(invoke(new(PROMISE, executor), "catch", lambda reason: ["caught", reason]))

    assert run(program) == ["caught", "text"]


def test_a_promise_needs_a_function() -> None:
    """`new Promise(5)` is a TypeError."""

    async def program() -> Any:
        new(PROMISE, 5)

    with pytest.raises(TypeErrorValue, match="Promise resolver 5 is not a function"):
        run(program)


def test_the_parts_of_a_promise_can_be_had_separately() -> None:
    """`withResolvers` gives a promise and the functions that decide it."""

    async def program() -> Any:
        parts = invoke(PROMISE, "withResolvers")
        call(parts["resolve"], 3)
        return await parts["promise"]

    assert run(program) == 3


def test_promises_print_their_state() -> None:
    """Pending, fulfilled and rejected promises print as in Node."""

    async def program() -> list[str]:
        failed = invoke(PROMISE, "reject", 3)
        texts = [inspect(value) for value in (later(1), invoke(PROMISE, "resolve", {"a": 1}), failed)]
        invoke(failed, "catch", lambda reason: None)
        return texts

    assert run(program) == ["Promise { <pending> }", "Promise { { a: 1 } }", "Promise { <rejected> 3 }"]


def test_a_scope_waits_for_what_was_started() -> None:
    """Nobody has to await a promise or a timer for it to end."""
    order: list[str] = []

    async def program() -> None:
        invoke(later(1, 5), "then", lambda: order.append("promise"))
        set_timeout(lambda: order.append("timer"), 2)
        order.append("end of code")

    run(program)

    assert "end of code" == order[0]
    assert {"promise", "timer"} == set(order[1:])


def test_a_failure_that_nobody_handles_is_raised_at_the_end() -> None:
    """Everything else still runs to its end first."""
    order: list[str] = []

    async def program() -> None:
        call(fails)
        invoke(later(1, 5), "then", lambda: order.append("other"))

    with pytest.raises(ErrorValue, match="boom"):
        run(program)

    assert order == ["other"]


def test_a_failure_may_be_handled_later() -> None:
    """It counts as handled when it is awaited before the end."""

    async def program() -> str:
        promise = call(fails)
        await asyncio.sleep(0)
        try:
            await promise
        except ErrorValue as error:
            return str(error)
        return "no error"

    assert run(program) == "Error: boom"


@pytest.mark.parametrize("way", ["raise", "cancel"])
def test_a_scope_that_is_left_early_ends_its_tasks(way: str) -> None:
    """Tasks are cancelled and have ended, and timers do not fire, when the scope has been left."""
    order: list[str] = []

    async def work() -> None:
        try:
            await never()
        finally:
            await asyncio.sleep(0)
            order.append("ended")

    async def program() -> None:
        async with TaskScope():
            call(work)
            set_timeout(lambda: order.append("fired"), 1)
            if way == "raise":
                raise ValueError("left")
            await never()

    async def outer() -> None:
        task = asyncio.ensure_future(program())
        await asyncio.sleep(0)
        if way == "cancel":
            task.cancel()
        await asyncio.wait([task])
        order.append(f"{len(asyncio.all_tasks())} task left")
        order.append(type(task.exception()).__name__ if way == "raise" else str(task.cancelled()))

    asyncio.run(outer())

    assert ["ended", "1 task left", {"raise": "ValueError", "cancel": "True"}[way]] == order


def test_cancelling_a_scope_that_waits_ends_its_tasks() -> None:
    """Also when its own code has ended already."""
    ended: list[bool] = []

    async def work() -> None:
        try:
            await never()
        finally:
            ended.append(True)

    async def program() -> None:
        async with TaskScope():
            call(work)

    async def outer() -> bool:
        task = asyncio.ensure_future(program())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert (asyncio.run(outer()), ended) == (True, [True])


def test_work_belongs_to_the_innermost_scope() -> None:
    """An inner scope waits for its own work, before what follows it in the outer one."""
    order: list[str] = []

    async def program() -> None:
        async with TaskScope():
            invoke(later(1, 9), "then", lambda: order.append("inner"))
        order.append("after")

    run(program)

    assert order == ["inner", "after"]


def test_nothing_starts_outside_a_scope() -> None:
    """Without a scope nobody would wait for it."""

    async def program() -> None:
        spawn(never())

    with pytest.raises(KoiError, match="outside a run"):
        asyncio.run(program())


def test_giving_up_on_a_promise_leaves_it_alone() -> None:
    """A waiter that is cancelled does not cancel what others may wait for."""

    async def program() -> Any:
        shared = later("kept", 5)
        waiter = asyncio.ensure_future(settle(shared))
        await asyncio.sleep(0)
        waiter.cancel()
        return await shared

    assert run(program) == "kept"


def test_timers_fire_in_order_and_can_be_cleared() -> None:
    """Arguments are passed on; a cleared timer does not fire, and clearing nothing is no error."""
    order: list[Any] = []

    async def program() -> None:
        set_timeout(lambda a, b: order.append([a, b]), 40, 1, 2)
        set_timeout(lambda: order.append("first"), 20)
        call(GLOBALS["clearTimeout"], set_timeout(lambda: order.append("never"), 25))
        call(GLOBALS["clearTimeout"], undefined)
        call(GLOBALS["queueMicrotask"], lambda: order.append("at once"))

    run(program)

    assert order == ["at once", "first", [1, 2]]


def test_an_interval_repeats_until_it_is_cleared() -> None:
    """The callback may clear it itself."""
    count = [0]

    async def program() -> None:
        def tick() -> None:
            count[0] += 1
            if count[0] == 3:
                call(GLOBALS["clearInterval"], interval)

        interval = call(GLOBALS["setInterval"], tick, 1)

    run(program)

    assert count == [3]


def test_a_timer_need_not_keep_the_program_alive() -> None:
    """A timer that was unreferenced does not fire after everything else has ended."""
    order: list[str] = []

    async def program() -> bool:
        timer = set_timeout(lambda: order.append("fired"), 60_000)
        invoke(timer, "unref")
        return bool(invoke(timer, "hasRef"))

    assert (run(program), order) == (False, [])


def test_what_a_timer_throws_is_raised_at_the_end() -> None:
    """Errors of callbacks do not disappear, asynchronous ones neither."""

    async def program() -> None:
        set_timeout(fails, 1)

    with pytest.raises(ErrorValue, match="boom"):
        run(program)


def test_a_timer_needs_a_function() -> None:
    """`setTimeout("code")` is refused."""

    async def program() -> None:
        set_timeout("code", 1)

    with pytest.raises(TypeErrorValue, match="a timer needs a function"):
        run(program)
