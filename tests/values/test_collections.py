"""Map and Set."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.call_helpers import get, invoke, iterate, new
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.inspect_value import inspect
from koi_lang.js.keyed_collections import MAP, SET
from koi_lang.js.number_format import NAN
from koi_lang.js.undefined import undefined


def test_keys_are_told_apart_as_in_javascript() -> None:
    """1 is not true and not "1"; NaN is itself and -0 is 0; objects are keys by identity."""
    items: list[Any] = []
    values = new(SET, [1, 1.0, True, "1", NAN, NAN, 0, -0.0, None, undefined, items, items, []])

    assert get(values, "size") == 9


def test_zero_has_no_sign_as_a_key() -> None:
    """What is stored under -0 is found under 0, and listed so."""
    assert ("Set(1) { 0 }", "Map(1) { 0 => -0 }") == (inspect(new(SET, [-0.0])), inspect(new(MAP, [[-0.0, -0.0]])))


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("union", [3, 4], "Set(4) { 1, 2, 3, 4 }"),
        ("intersection", [9, 3, 1, 8], "Set(2) { 1, 3 }"),
        ("intersection", [3, 1], "Set(2) { 3, 1 }"),
        ("difference", [2], "Set(2) { 1, 3 }"),
        ("symmetricDifference", [3, 4], "Set(3) { 1, 2, 4 }"),
        ("isSubsetOf", [1, 2, 3, 4], "true"),
        ("isSupersetOf", [1, 9], "false"),
        ("isDisjointFrom", [7], "true"),
    ],
)
def test_sets_are_compared_and_combined(name: str, other: list[int], expected: str) -> None:
    """With another set, or with the keys of a map; what has no keys is refused."""
    values = new(SET, [1, 2, 3])

    assert [expected, expected] == [
        inspect(invoke(values, name, new(SET, other))),
        inspect(invoke(values, name, new(MAP, [[key, 0] for key in other]))),
    ]
    with pytest.raises(TypeErrorValue, match="an array is no Set; write `new Set"):
        invoke(values, name, other)


def test_a_map_keeps_the_order_of_its_keys() -> None:
    """A key that is set again keeps its place, one that is removed and set again goes last."""
    made = new(MAP, [["a", 1], ["b", 2], ["c", 3]])
    invoke(made, "set", "a", 9)
    invoke(made, "delete", "b")
    invoke(made, "set", "b", 5)

    assert list(iterate(made)) == [["a", 9], ["c", 3], ["b", 5]]


def test_members_of_a_map() -> None:
    """Reading, asking, removing and counting work as in JavaScript; `set` returns the map."""
    made = new(MAP)
    same = invoke(made, "set", "k", "v") is made

    assert [True, "v", undefined, True, False, True, False, 0] == [
        same,
        invoke(made, "get", "k"),
        invoke(made, "get", "x"),
        invoke(made, "has", "k"),
        invoke(made, "has", "x"),
        invoke(made, "delete", "k"),
        invoke(made, "delete", "k"),
        get(made, "size"),
    ]


def test_iterators_of_a_map() -> None:
    """Keys, values and entries can be spread."""
    made = new(MAP, [["a", 1]])

    assert [list(iterate(invoke(made, name))) for name in ("keys", "values", "entries")] == [["a"], [1], [["a", 1]]]


def test_for_each_gives_value_key_and_collection() -> None:
    """The callback gets as many of the three as it accepts."""
    seen: list[Any] = []
    invoke(new(MAP, [["a", 1]]), "forEach", lambda value, key, whole: seen.append((value, key, get(whole, "size"))))
    invoke(new(SET, ["x"]), "forEach", lambda value: seen.append(value))

    assert seen == [(1, "a", 1), "x"]


def test_a_collection_may_change_while_it_is_visited() -> None:
    """What is removed is skipped, what is added is visited."""
    values = new(SET, [1, 2, 3])
    seen = []
    for value in iterate(values):
        seen.append(value)
        if value == 1:
            invoke(values, "delete", 2)
            invoke(values, "add", 4)

    assert seen == [1, 3, 4]


def test_a_map_needs_pairs() -> None:
    """Entries that are no arrays are refused."""
    with pytest.raises(TypeErrorValue, match="Iterator value 1 is not an entry object"):
        new(MAP, [1])


def test_a_set_of_a_text_has_its_characters() -> None:
    """Anything that can be iterated makes a set; `clear` empties it."""
    values = new(SET, "aab")
    before = list(iterate(values))
    invoke(values, "clear")

    assert (before, get(values, "size")) == (["a", "b"], 0)
