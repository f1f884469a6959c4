"""Operators, against what Node gives for the same operands."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js import operators
from koi_lang.js.call_helpers import get
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.undefined import undefined

BINARY: list[tuple[Any, ...]] = [
    ("add", 1, 2, "3"),
    ("add", 1, "2", "'12'"),
    ("add", "a", "b", "'ab'"),
    ("add", "a", None, "'anull'"),
    ("add", "a", undefined, "'aundefined'"),
    ("add", None, 1, "1"),
    ("add", undefined, 1, "NaN"),
    ("add", True, 1, "2"),
    ("add", [1, 2], [3], "'1,23'"),
    ("add", {}, "x", "'[object Object]x'"),
    ("add", [], [], "''"),
    ("add", 0.1, 0.2, "0.30000000000000004"),
    ("add", 9007199254740992, 1, "9007199254740992"),
    ("add", DateValue(0), 1, "'Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)1'"),
    ("subtract", 5, 3, "2"),
    ("subtract", "5", 2, "3"),
    ("subtract", "x", 1, "NaN"),
    ("subtract", 1, None, "1"),
    ("subtract", DateValue(5000), DateValue(2000), "3000"),
    ("subtract", 0.3, 0.1, "0.19999999999999998"),
    ("subtract", [], 1, "-1"),
    ("subtract", -9007199254740992, 1, "-9007199254740992"),
    ("multiply", 3, 4, "12"),
    ("multiply", "3", "4", "12"),
    ("multiply", 0, -1, "-0"),
    ("multiply", 1.5, 2, "3"),
    ("multiply", NAN, 1, "NaN"),
    ("multiply", 1099511627776, 1099511627776, "1.2089258196146292e+24"),
    ("multiply", INFINITY, 0, "NaN"),
    ("multiply", True, 5, "5"),
    ("divide", 4, 2, "2"),
    ("divide", 5, 2, "2.5"),
    ("divide", 1, 0, "Infinity"),
    ("divide", -1, 0, "-Infinity"),
    ("divide", 0, 0, "NaN"),
    ("divide", 1, -0.0, "-Infinity"),
    ("divide", 0, -5, "-0"),
    ("divide", "10", 4, "2.5"),
    ("remainder", -7, 3, "-1"),
    ("remainder", 7, -3, "1"),
    ("remainder", 5, 0, "NaN"),
    ("remainder", 5.5, 2, "1.5"),
    ("remainder", -4, 2, "-0"),
    ("remainder", INFINITY, 2, "NaN"),
    ("remainder", 2, INFINITY, "2"),
    ("remainder", "9", 4, "1"),
    ("and_bits", 6, 3, "2"),
    ("and_bits", -1, 4294967295, "-1"),
    ("or_bits", 4294967296.5, "7", "7"),
    ("or_bits", NAN, -INFINITY, "0"),
    ("or_bits", 1e300, 0, "0"),
    ("xor_bits", True, None, "1"),
    ("shift_left", 1, 31, "-2147483648"),
    ("shift_left", 1, 33, "2"),
    ("shift_right", -9, 1, "-5"),
    ("shift_right", 2147483648, -1, "-1"),
    ("shift_unsigned", -1, 0, "4294967295"),
    ("shift_unsigned", -1, 28, "15"),
    ("power", 2, 10, "1024"),
    ("power", 2, -1, "0.5"),
    ("power", 2, 100, "1.2676506002282294e+30"),
    ("power", -8, 0.3333333333333333, "NaN"),
    ("power", 0, 0, "1"),
    ("power", NAN, 0, "1"),
    ("power", 1, INFINITY, "NaN"),
    ("power", -2, 3, "-8"),
    ("power", 10, 400, "Infinity"),
    ("power", -10, 401, "-Infinity"),
    ("power", 0, -1, "Infinity"),
    ("power", -0.0, -1, "-Infinity"),
    ("power", 4, 0.5, "2"),
    ("same", 1, 1.0, "true"),
    ("same", 1, True, "false"),
    ("same", "1", 1, "false"),
    ("same", "a", "a", "true"),
    ("same", NAN, NAN, "false"),
    ("same", None, undefined, "false"),
    ("same", 0, -0.0, "true"),
    ("same", undefined, undefined, "true"),
    ("same", [], [], "false"),
    ("same", False, 0, "false"),
    ("equal", 1, "1", "true"),
    ("equal", None, undefined, "true"),
    ("equal", None, 0, "false"),
    ("equal", "", 0, "true"),
    ("equal", True, 1, "true"),
    ("equal", [1], 1, "true"),
    ("equal", ["a"], "a", "true"),
    ("equal", NAN, NAN, "false"),
    ("equal", {}, "[object Object]", "true"),
    ("equal", "0", False, "true"),
    ("equal", undefined, 0, "false"),
    ("equal", [], False, "true"),
    ("less", 1, 2, "true"),
    ("less", "a", "b", "true"),
    ("less", "10", "9", "true"),
    ("less", "10", 9, "false"),
    ("less", None, 1, "true"),
    ("less", undefined, 1, "false"),
    ("less", NAN, 1, "false"),
    ("less", [2], 3, "true"),
    ("less", DateValue(1), DateValue(2), "true"),
    ("less", "B", "a", "true"),
    ("less_equal", 2, 2, "true"),
    ("less_equal", "a", "a", "true"),
    ("less_equal", None, 0, "true"),
    ("less_equal", undefined, undefined, "false"),
    ("less_equal", 1.5, 1, "false"),
    ("greater", 2, 1, "true"),
    ("greater", "b", "a", "true"),
    ("greater", "2", 10, "false"),
    ("greater", True, False, "true"),
    ("greater", NAN, NAN, "false"),
    ("greater_equal", 1, 1, "true"),
    ("greater_equal", None, 0, "true"),
    ("greater_equal", undefined, 0, "false"),
    ("greater_equal", "b", "a", "true"),
    ("greater_equal", 1, 2, "false"),
]
UNARY: list[tuple[Any, ...]] = [
    ("negate", 1, "-1"),
    ("negate", 0, "-0"),
    ("negate", -0.0, "0"),
    ("negate", "5", "-5"),
    ("negate", None, "-0"),
    ("negate", "x", "NaN"),
    ("negate", True, "-1"),
    ("number", "", "0"),
    ("number", " 12 ", "12"),
    ("number", "0x1f", "31"),
    ("number", "1e3", "1000"),
    ("number", "12px", "NaN"),
    ("number", None, "0"),
    ("number", undefined, "NaN"),
    ("number", True, "1"),
    ("number", [], "0"),
    ("number", [7], "7"),
    ("number", [1, 2], "NaN"),
    ("number", {}, "NaN"),
    ("number", "Infinity", "Infinity"),
    ("number", "-.5", "-0.5"),
    ("number", "1_0", "NaN"),
    ("type_of", 1, "'number'"),
    ("type_of", "a", "'string'"),
    ("type_of", True, "'boolean'"),
    ("type_of", None, "'object'"),
    ("type_of", undefined, "'undefined'"),
    ("type_of", [], "'object'"),
    ("type_of", {}, "'object'"),
    ("type_of", NAN, "'number'"),
    ("truth", 0, "false"),
    ("truth", -0.0, "false"),
    ("truth", NAN, "false"),
    ("truth", "", "false"),
    ("truth", "0", "true"),
    ("truth", None, "false"),
    ("truth", undefined, "false"),
    ("truth", [], "true"),
    ("truth", {}, "true"),
    ("truth", 1, "true"),
    ("truth", "a", "true"),
    ("truth", False, "false"),
    ("text", 1e21, "'1e+21'"),
    ("text", 0.1, "'0.1'"),
    ("text", 1e-07, "'1e-7'"),
    ("text", 123456789012345680000, "'123456789012345680000'"),
    ("text", 1.5, "'1.5'"),
    ("text", -0.0, "'0'"),
    ("text", None, "'null'"),
    ("text", undefined, "'undefined'"),
    ("text", True, "'true'"),
    ("text", [1, [2, None], undefined], "'1,2,,'"),
    ("text", {}, "'[object Object]'"),
    ("text", "a", "'a'"),
    ("text", 1e300, "'1e+300'"),
    ("text", 5e-324, "'5e-324'"),
    ("text", 1e-06, "'0.000001'"),
    ("increment", 1, "2"),
    ("increment", "5", "6"),
    ("increment", NAN, "NaN"),
    ("increment", 9007199254740992, "9007199254740992"),
    ("increment", undefined, "NaN"),
    ("decrement", 1, "0"),
    ("decrement", "5", "4"),
    ("decrement", 0.5, "-0.5"),
    ("decrement", None, "-1"),
]


@pytest.mark.parametrize(("name", "left", "right", "expected"), BINARY)
def test_binary_operators_give_what_javascript_gives(name: str, left: Any, right: Any, expected: str) -> None:
    """An operator with two operands has the result that Node prints."""
    result = getattr(operators, name)(left, right)

    assert expected == inspect(result)


@pytest.mark.parametrize(("name", "operand", "expected"), UNARY)
def test_unary_operators_give_what_javascript_gives(name: str, operand: Any, expected: str) -> None:
    """An operator with one operand has the result that Node prints."""
    result = getattr(operators, name)(operand)

    assert expected == inspect(result)


def test_a_sum_of_many_is_added_from_the_left() -> None:
    """Numbers before the first text are counted, those after it are joined."""
    assert operators.add(1, 2, "a", 1, 2) == "3a12"


def test_whole_results_are_ints_up_to_the_precision_of_doubles() -> None:
    """A result is an int where it is whole and at most 2**53, else a float."""
    results = [operators.divide(4, 2), operators.multiply(2**53, 2), operators.add(0.5, 0.5)]

    assert [int, float, int] == [type(result) for result in results]


def test_lists_and_functions_are_the_same_by_identity() -> None:
    """Two equal arrays are two values; a method read twice is one."""
    items: list[Any] = []
    pairs = [(items, items), (items, []), (get(items, "push"), get(items, "push")), (get([], "push"), get([], "pop"))]

    assert [operators.same(left, right) for left, right in pairs] == [True, False, True, False]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([], "Array", True),
        ([], "Object", True),
        ({}, "Array", False),
        ("a", "String", False),
        (1, "Object", False),
        (TypeErrorValue("x"), "Error", True),
        (TypeErrorValue("x"), "TypeError", True),
        (TypeErrorValue("x"), "RangeError", False),
    ],
)
def test_instances_of_the_globals(value: Any, kind: str, expected: bool) -> None:
    """`instanceof` knows the globals; texts and numbers are instances of nothing."""
    assert expected is operators.instance_of(value, GLOBALS[kind])


def test_instances_of_something_that_is_no_class() -> None:
    """The right side of `instanceof` must be callable."""
    with pytest.raises(TypeErrorValue, match="Right-hand side of 'instanceof' is not callable"):
        operators.instance_of([], {})


def test_a_template_joins_its_parts_as_text() -> None:
    """Each part of a template literal is written as `String` writes it."""
    assert operators.template("n = ", 1, ", ", {}, ", ", [1, 2], ", ", None) == "n = 1, [object Object], 1,2, null"


@pytest.mark.parametrize(("key", "value", "expected"), [("a", {"a": 1}, True), (0, [5], True), (1, [5], False)])
def test_the_operator_in(key: Any, value: Any, expected: bool) -> None:
    """`in` looks for members of objects and positions of arrays."""
    assert expected is operators.has(key, value)


def test_the_operator_in_needs_an_object() -> None:
    """`in` refuses a text."""
    with pytest.raises(TypeErrorValue, match="Cannot use 'in' operator to search for 'length' in abc"):
        operators.has("length", "abc")


def test_objects_with_value_of_and_to_string_convert_themselves() -> None:
    """Arithmetic asks `valueOf`, templates ask `toString`."""
    money = {"valueOf": lambda: 5, "toString": lambda: "five"}

    assert [operators.add(money, 1), operators.template(money)] == [6, "five"]


def test_whole_numbers_that_are_no_doubles_are_rounded_before_they_are_computed_with() -> None:
    """Node gives the same for the double that is nearest."""
    b = 725653563933458433
    bits = [operators.or_bits(b, 0), operators.shift_right(b, 1), operators.and_bits(-b, 0xFFFF)]
    texts = [get(b, "toFixed")(0), get(b, "toLocaleString")("en-US"), get(b, "toPrecision")(18)]

    assert [2, -2, 2, 0] == [operators.remainder(*each) for each in ((b, 10), (-b, 10), (b, -10), (5, 5))]
    assert [5, 5] == [operators.remainder(5, b), operators.remainder(5, -b)]
    assert [1547698176, 773849088, 0] == bits
    assert ["725653563933458432", "725,653,563,933,458,400", "725653563933458432"] == texts
