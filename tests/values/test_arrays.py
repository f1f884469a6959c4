"""Methods of arrays, against what Node gives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.js.call_helpers import get, invoke, iterate, put
from koi_lang.js.errors import ErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.promises import Promise, TaskScope, settle
from koi_lang.js.undefined import undefined

METHODS: list[tuple[Any, ...]] = [
    ([1, 2, 3], "at", (-1,), "3"),
    ([1], "concat", (2, [3, [4]]), "[ 1, 2, 3, [ 4 ] ]"),
    ([1, 2, 3], "fill", (0, 1), "[ 1, 0, 0 ]"),
    ([1, [2, [3]]], "flat", (), "[ 1, 2, [ 3 ] ]"),
    ([1, [2, [3]]], "flat", (INFINITY,), "[ 1, 2, 3 ]"),
    ([1, NAN], "includes", (NAN,), "true"),
    ([1, NAN], "indexOf", (NAN,), "-1"),
    (["a", "b", "a"], "lastIndexOf", ("a",), "2"),
    (["a", "b"], "indexOf", ("b", -1), "1"),
    ([1, None, undefined, "a"], "join", (), "'1,,,a'"),
    ([1, 2], "join", ("-",), "'1-2'"),
    ([1, [2, 3]], "toString", (), "'1,2,3'"),
    ([1, 2], "pop", (), "2"),
    ([], "pop", (), "undefined"),
    ([1, 2], "push", (3, 4), "4"),
    ([1, 2], "shift", (), "1"),
    ([], "shift", (), "undefined"),
    ([1], "unshift", (2, 3), "3"),
    ([1, 2, 3], "reverse", (), "[ 3, 2, 1 ]"),
    ([1, 2, 3], "toReversed", (), "[ 3, 2, 1 ]"),
    ([1, 2, 3, 4], "slice", (1, -1), "[ 2, 3 ]"),
    ([1, 2, 3], "slice", (-2,), "[ 2, 3 ]"),
    ([10, 9, 1, "b", undefined, None], "sort", (), "[ 1, 10, 9, 'b', null, undefined ]"),
    ([3, 1, 2], "toSorted", (), "[ 1, 2, 3 ]"),
    ([1, 2, 3, 4], "splice", (1, 2, "x"), "[ 2, 3 ]"),
    ([1, 2, 3], "splice", (-1,), "[ 3 ]"),
    ([1, 2, 3], "splice", (), "[]"),
    ([1, 2, 3], "splice", (undefined,), "[ 1, 2, 3 ]"),
    ([1, 2, 3], "toSpliced", (0, 1), "[ 2, 3 ]"),
    ([1, 2], "with", (-1, 9), "[ 1, 9 ]"),
    ([1, 2], "with", (5, 9), "RangeError: Invalid index : 5"),
    ([1, 2], "keys", (), "Object [Array Iterator] {}"),
]


def outcome(value: Any, method: str, args: tuple[Any, ...]) -> str:
    """What Node's inspection shows for a call, or the error it ends with."""
    try:
        return inspect(invoke(value, method, *args))
    except ErrorValue as error:
        return str(error)


@pytest.mark.parametrize(("items", "method", "args", "expected"), METHODS)
def test_methods_of_arrays_give_what_javascript_gives(
    items: list[Any], method: str, args: tuple[Any, ...], expected: str
) -> None:
    """A method of an array has the result that Node prints."""
    assert expected == outcome(list(items), method, args)


@pytest.mark.parametrize(
    ("method", "callback", "expected"),
    [
        ("map", lambda x: x * 2, [6, 2, 4]),
        ("map", lambda x, i: i, [0, 1, 2]),
        ("map", lambda x, i, all: len(all), [3, 3, 3]),
        ("map", lambda: 7, [7, 7, 7]),
        ("map", lambda *given: len(given), [3, 3, 3]),
        ("map", lambda a, b, c, d: d, [undefined] * 3),
        ("filter", lambda x: x > 1, [3, 2]),
        ("find", lambda x: x < 3, 1),
        ("find", lambda x: False, undefined),
        ("findIndex", lambda x: x == 2, 2),
        ("findLast", lambda x: x > 1, 2),
        ("findLastIndex", lambda x: x > 9, -1),
        ("some", lambda x: x == 2, True),
        ("every", lambda x: x == 2, False),
        ("flatMap", lambda x: [x, [x]], [3, [3], 1, [1], 2, [2]]),
        ("forEach", lambda x: x, undefined),
        ("reduce", lambda total, x: total + x, 6),
        ("reduceRight", lambda total, x: total * 10 + x, 213),
        ("sort", lambda a, b: a - b, [1, 2, 3]),
        ("toSorted", lambda a, b: b - a, [3, 2, 1]),
    ],
)
def test_methods_with_a_callback(method: str, callback: Any, expected: Any) -> None:
    """A callback gets as many of item, index and array as it accepts."""
    assert expected == invoke([3, 1, 2], method, callback)


def test_reducing_nothing_needs_a_first_value() -> None:
    """An empty array is reduced to the first value, and to an error without one."""
    with pytest.raises(TypeErrorValue, match="Reduce of empty array with no initial value"):
        invoke([], "reduce", lambda a, b: a)

    assert invoke([], "reduce", lambda a, b: a, 5) == 5


def test_what_a_callback_adds_is_not_visited() -> None:
    """The number of calls is settled before the first one."""
    items = [1, 2]
    invoke(items, "forEach", lambda item: items.append(item))

    assert items == [1, 2, 1, 2]


def test_asynchronous_callbacks_run_at_the_same_time() -> None:
    """`map` gives promises, each callback starts before the first has ended."""
    order: list[Any] = []

    async def work(n: int) -> int:
        order.append(f"start {n}")
        await asyncio.sleep(0)
        order.append(f"end {n}")
        return n * 10

    async def program() -> list[Any]:
        async with TaskScope():
            promises = invoke([1, 2], "map", work)
            assert all(isinstance(promise, Promise) for promise in promises)
            return list(await settle(invoke(GLOBALS["Promise"], "all", promises)))

    assert (asyncio.run(program()), order) == ([10, 20], ["start 1", "start 2", "end 1", "end 2"])


def test_writing_past_the_end_grows_an_array() -> None:
    """The places in between are undefined; the length can be set."""
    items = [1]
    put(items, 3, "x")
    before = list(items)
    put(items, "length", 1)

    assert ([1, undefined, undefined, "x"], [1]) == (before, items)


def test_entries_of_an_array() -> None:
    """`entries` gives positions with items, and can be stepped through by hand."""
    entries = invoke(["a"], "entries")
    steps = [get(entries, "next")(), get(entries, "next")()]

    assert [{"value": [0, "a"], "done": False}, {"value": undefined, "done": True}] == steps
    assert list(iterate(invoke(["a"], "entries"))) == [[0, "a"]]


def test_only_whole_numbers_are_lengths() -> None:
    """An impossible length is a RangeError and changes nothing."""
    items = [1, 2]
    with pytest.raises(ErrorValue, match="Invalid array length"):
        put(items, "length", -1)

    assert items == [1, 2]
