"""Reading, writing and calling members."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from koi_lang.js.call_helpers import (
    apply,
    apply_member,
    call,
    get,
    has,
    invoke,
    iterate,
    keys,
    new,
    put,
    remove,
    spread,
)
from koi_lang.js.errors import ErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.keyed_collections import MAP
from koi_lang.js.undefined import undefined


@dataclass
class Point:
    """An object of a Python module."""

    x: int
    y: int = 0
    _hidden: str = "secret"

    def moved(self, by: int, times: int = 1) -> Point:
        """A point further right."""
        return Point(self.x + by * times, self.y)


class Narrow:
    """A class that says which members Koi code sees."""

    __koi_members__: ClassVar[dict[str, str]] = {"shownAs": "shown", "locked": "locked"}

    def __init__(self) -> None:
        self.shown = 1
        self.other = 2

    @property
    def locked(self) -> int:
        """A member that cannot be set."""
        return 3


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        ({"a": 1}, "a", 1),
        ({"a": 1}, "b", undefined),
        ({"1": "x"}, 1, "x"),
        ({"1.5": "x"}, 1.5, "x"),
        ({"null": "x"}, None, "x"),
        ({"true": "x"}, True, "x"),
        ([1, 2], 1, 2),
        ([1, 2], "1", 2),
        ([1, 2], 1.0, 2),
        ([1, 2], -0.0, 1),
        ([1, 2], -1, undefined),
        ([1, 2], 5, undefined),
        ([1, 2], "length", 2),
        ([1, 2], "nothing", undefined),
        ((1, 2), "length", 2),
        ((1, 2), 0, 1),
        ("abc", "length", 3),
        (5, "nothing", undefined),
        (True, "nothing", undefined),
        (MappingProxyType({"a": 1}), "a", 1),
        (len, "name", "len"),
        (lambda a, b, c=1: None, "length", 2),
        (Point(1), "x", 1),
        (Point(1), "_hidden", undefined),
        (Point(1), "__class__", undefined),
        (Point(1), "z", undefined),
        (math, "pi", math.pi),
        (math, "__name__", undefined),
        (Narrow(), "shownAs", 1),
        (Narrow(), "shown", undefined),
        (Narrow(), "other", undefined),
    ],
)
def test_reading_members(value: Any, key: Any, expected: Any) -> None:
    """A member is found by its name as text; what is missing or hidden is undefined."""
    assert expected == get(value, key)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (undefined, "Cannot read properties of undefined (reading 'x')"),
        (None, "Cannot read properties of null (reading 'x')"),
    ],
)
def test_nothing_has_no_members(value: Any, message: str) -> None:
    """Reading from null and undefined is a TypeError with Node's words."""
    with pytest.raises(TypeErrorValue) as failure:
        get(value, "x")

    assert ("TypeError", message) == (get(failure.value, "name"), get(failure.value, "message"))


def test_writing_members() -> None:
    """Objects take any name, Python objects their attributes; the value written is the result."""
    record: dict[str, Any] = {}
    point = Point(1)
    results = [put(record, 1, "a"), put(record, "b", 2), put(point, "x", 7)]

    assert (results, record, point.x) == (["a", 2, 7], {"1": "a", "b": 2}, 7)


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        (None, "x", "Cannot set properties of null (setting 'x')"),
        (undefined, "x", "Cannot set properties of undefined (setting 'x')"),
        ("abc", "x", "Cannot set property 'x' of \"abc\""),
        ([], "x", "Cannot set property 'x' of an array"),
        (Point(1), "_hidden", "Cannot set property '_hidden' of `Point`"),
        (Narrow(), "other", "Cannot set property 'other' of `Narrow`"),
        (Narrow(), "locked", "Cannot set property 'locked' of `Narrow`"),
        (MAP, "groupBy", "Cannot set property 'groupBy' of"),
    ],
)
def test_what_cannot_be_written(value: Any, key: str, message: str) -> None:
    """Values without members, hidden members and read-only ones refuse."""
    with pytest.raises(TypeErrorValue) as failure:
        put(value, key, 1)

    assert message in failure.value.message


def test_removing_members() -> None:
    """`delete` removes from objects and leaves a gap in arrays."""
    record, items = {"a": 1, "b": 2}, [1, 2]
    results = [remove(record, "a"), remove(record, "a"), remove(items, 0)]

    assert ([True, True, True], {"b": 2}, [undefined, 2]) == (results, record, items)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "10": 2, "9": 3, "01": 4}, ["9", "10", "b", "01"]),
        (["x", "y"], ["0", "1"]),
        ("ab", ["0", "1"]),
        (None, []),
        (undefined, []),
        (5, []),
        (Point(1, 2), ["x", "y"]),
    ],
)
def test_names_are_listed_in_the_order_of_javascript(value: Any, expected: list[str]) -> None:
    """Numbers come first and ascending, other names as they were added."""
    assert expected == list(keys(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ([5, 6], {"0": 5, "1": 6}),
        ("ab", {"0": "a", "1": "b"}),
        (None, {}),
        (undefined, {}),
        (7, {}),
        (Point(1, 2), {"x": 1, "y": 2}),
    ],
)
def test_spreading_into_an_object(value: Any, expected: dict[str, Any]) -> None:
    """Own members are taken over; nothing has none."""
    assert expected == spread(value)


def test_spreading_gives_another_object() -> None:
    """What is spread can be changed without changing its source."""
    source = {"a": 1}
    spread(source)["a"] = 2

    assert source == {"a": 1}


@pytest.mark.parametrize(("value", "expected"), [("añ", ["a", "ñ"]), ([1], [1]), ((1, 2), [1, 2]), (range(2), [0, 1])])
def test_iterating(value: Any, expected: list[Any]) -> None:
    """Texts, arrays and whatever Python can iterate have items."""
    assert expected == list(iterate(value))


@pytest.mark.parametrize(("value", "name"), [({}, "an object"), (None, "null"), (5, "5"), (undefined, "undefined")])
def test_what_has_no_items(value: Any, name: str) -> None:
    """Objects and numbers cannot be iterated."""
    with pytest.raises(TypeErrorValue, match=f"{name} is not iterable"):
        iterate(value)


def two(a: Any, b: Any) -> list[Any]:
    """A function of two arguments."""
    return [a, b]


def optional(a: Any, b: Any = "default") -> list[Any]:
    """A function whose second argument may be left out."""
    return [a, b]


def several(a: Any, *rest: Any) -> list[Any]:
    """A function of any number of arguments."""
    return [a, *rest]


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (two, (1, 2), [1, 2]),
        (two, (1,), [1, undefined]),
        (two, (), [undefined, undefined]),
        (two, (1, 2, 3), [1, 2]),
        (optional, (1,), [1, "default"]),
        (optional, (1, 2, 3), [1, 2]),
        (several, (), [undefined]),
        (several, (1, 2, 3), [1, 2, 3]),
        (abs, (-1, 2), 1),
        (math.floor, (1.5, 2), 1),
        ("abc".upper, (1,), "ABC"),
        (Point(1).moved, (2, 3, 4), Point(7)),
        (Point, (1, 2, "x", 4), Point(1, 2, "x")),
    ],
)
def test_calls_fit_the_function(f: Callable[..., Any], args: tuple[Any, ...], expected: Any) -> None:
    """Missing arguments are undefined unless they have a default, those too many are dropped."""
    assert expected == apply(f, *args)


@pytest.mark.parametrize(("value", "name"), [(5, "5"), (undefined, "undefined"), ({}, "an object"), ("f", '"f"')])
def test_what_cannot_be_called(value: Any, name: str) -> None:
    """Calling something else is a TypeError that names it."""
    with pytest.raises(TypeErrorValue, match=f"{name} is not a function"):
        call(value)


def test_a_face_for_python_gives_way_to_the_code_behind_it() -> None:
    """A function with `__koi_code__` is called through that."""

    async def face() -> str:
        return "face"

    face.__dict__["__koi_code__"] = lambda a: ["code", a]

    assert [call(face, 1), invoke([5], "map", face)] == [["code", 1], [["code", 5]]]


def test_methods_are_called_on_their_object() -> None:
    """Methods of built-in values, functions in objects and Python methods are all members."""
    record = {"double": lambda n: n * 2}

    assert ["ABC", 8, Point(3), True] == [
        apply_member("abc", "toUpperCase"),
        invoke(record, "double", 4),
        invoke(Point(1), "moved", 2),
        invoke({"a": 1}, "hasOwnProperty", "a"),
    ]


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        ({"total": 5}, "total", "`total` of an object is not a function"),
        ({}, "x", "`x` of an object is not a function"),
        ([], "x", "`x` of an array is not a function"),
        ("s", "x", '`x` of "s" is not a function'),
        (Point(1), "x", "`x` of `Point` is not a function"),
        ([], "foreach", "`foreach` of an array is not a function; did you mean `forEach`?"),
        ("s", "toUppercase", '`toUppercase` of "s" is not a function; did you mean `toUpperCase`?'),
        (5, "toFixd", "`toFixd` of 5 is not a function; did you mean `toFixed`?"),
        (GLOBALS["console"], "lgo", "`lgo` of an object is not a function; did you mean `log`?"),
        (GLOBALS["Array"], "isarray", "`isarray` of the function `Array` is not a function; did you mean `isArray`?"),
        (new(GLOBALS["Map"]), "gett", "`gett` of `Map` is not a function; did you mean `get`?"),
        (math, "squrt", "`squrt` of the module `math` is not a function; did you mean `sqrt`?"),
        (Point(1), "movd", "`movd` of `Point` is not a function; did you mean `moved`?"),
    ],
)
def test_a_member_that_is_no_function_is_named(value: Any, key: str, message: str) -> None:
    """The message says which member of what could not be called."""
    with pytest.raises(TypeErrorValue) as failure:
        invoke(value, key)

    assert message == failure.value.message


def test_a_method_can_be_taken_from_its_object() -> None:
    """A method that was read remembers the value it belongs to."""
    push = get([1], "push")

    assert [push(5), call(push, 6)] == [2, 3]


def test_functions_have_the_methods_of_functions() -> None:
    """`call`, `apply` and `bind` pass arguments on."""
    bound = invoke(two, "bind", None, 1)

    assert [
        invoke(two, "call", None, 1, 2),
        invoke(two, "apply", None, [1, 2]),
        call(bound, 2),
        get(bound, "name"),
    ] == [[1, 2], [1, 2], [1, 2], "bound two"]


def test_new_makes_instances_of_python_classes() -> None:
    """`new` fits the arguments as a call does."""
    assert Point(1, 2) == new(Point, 1, 2)


def test_new_needs_a_class() -> None:
    """A function or a number makes no instances."""
    with pytest.raises(TypeErrorValue, match="5 is not a constructor"):
        new(5)


def test_own_names_and_inherited_ones_are_in_an_object() -> None:
    """`in` sees members of Python objects, but not hidden ones."""
    assert [has(name, Point(1)) for name in ("x", "moved", "_hidden")] == [True, True, False]


def test_errors_take_members_of_their_own() -> None:
    """Whatever is set on an error can be read, listed and removed."""
    error = ErrorValue("x")
    put(error, "code", 5)
    listed = list(keys(error))
    remove(error, "code")

    assert (["code"], undefined) == (listed, get(error, "code"))
