"""Numbers as text and back, and their methods, against what Node gives."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.call_helpers import call, invoke
from koi_lang.js.errors import ErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.operators import text
from koi_lang.js.undefined import undefined

METHODS: list[tuple[Any, ...]] = [
    (1.005, "toFixed", (2,), "'1.00'"),
    (2.5, "toFixed", (0,), "'3'"),
    (-2.5, "toFixed", (0,), "'-3'"),
    (1.45, "toFixed", (1,), "'1.4'"),
    (1e21, "toFixed", (2,), "'1e+21'"),
    (0, "toFixed", (2,), "'0.00'"),
    (-1.5, "toFixed", (0,), "'-2'"),
    (10.235, "toFixed", (2,), "'10.23'"),
    (NAN, "toFixed", (2,), "'NaN'"),
    (1, "toFixed", (101,), "RangeError: toFixed() digits argument must be between 0 and 100"),
    (123.456, "toPrecision", (4,), "'123.5'"),
    (1e-05, "toPrecision", (1,), "'0.00001'"),
    (123456, "toPrecision", (2,), "'1.2e+5'"),
    (0, "toPrecision", (3,), "'0.00'"),
    (1e21, "toPrecision", (3,), "'1.00e+21'"),
    (12345, "toExponential", (), "'1.2345e+4'"),
    (12345, "toExponential", (2,), "'1.23e+4'"),
    (0, "toExponential", (), "'0e+0'"),
    (255, "toString", (16,), "'ff'"),
    (-NAN, "toLocaleString", (), "'NaN'"),
    (-255, "toString", (2,), "'-11111111'"),
    (0.5, "toString", (2,), "'0.1'"),
    (0.1, "toString", (3,), "'0.0022002200220022002200220022002201'"),
    (1, "toString", (1,), "RangeError: toString() radix argument must be between 2 and 36"),
    (1234567.891, "toLocaleString", (), "'1,234,567.891'"),
    (1234.5, "toLocaleString", ("en-US", {"style": "currency", "currency": "USD"}), "'$1,234.50'"),
    (0.256, "toLocaleString", ("en-US", {"style": "percent"}), "'26%'"),
    (5, "toLocaleString", ("en-US", {"minimumFractionDigits": 2}), "'5.00'"),
    (-0.0, "toLocaleString", (), "'-0'"),
    (1e21, "toLocaleString", (), "'1,000,000,000,000,000,000,000'"),
    (5, "valueOf", (), "5"),
    (True, "toString", (), "'true'"),
    (False, "valueOf", (), "false"),
]
TEXTS: list[tuple[Any, ...]] = [
    (0, "'0'"),
    (-0.0, "'0'"),
    (1, "'1'"),
    (1.0, "'1'"),
    (1.5, "'1.5'"),
    (0.30000000000000004, "'0.30000000000000004'"),
    (1e20, "'100000000000000000000'"),
    (1e21, "'1e+21'"),
    (123456789012345680000, "'123456789012345680000'"),
    (1.7976931348623157e308, "'1.7976931348623157e+308'"),
    (5e-324, "'5e-324'"),
    (1e-06, "'0.000001'"),
    (1e-07, "'1e-7'"),
    (1.234e-06, "'0.000001234'"),
    (-1e-10, "'-1e-10'"),
    (9007199254740992, "'9007199254740992'"),
    (1.152921504606847e18, "'1152921504606847000'"),
    (100, "'100'"),
    (NAN, "'NaN'"),
    (INFINITY, "'Infinity'"),
    (-INFINITY, "'-Infinity'"),
    (0.3333333333333333, "'0.3333333333333333'"),
]
INTEGERS: list[tuple[Any, ...]] = [
    ("42", undefined, "42"),
    (" 42abc", undefined, "42"),
    ("0x1F", undefined, "31"),
    ("z", 36, "35"),
    ("11", 2, "3"),
    ("", undefined, "NaN"),
    ("-0", undefined, "-0"),
    ("12", 1, "NaN"),
    ("9007199254740993", undefined, "9007199254740992"),
    ("3.9", 10, "3"),
    ("0x1f", 16, "31"),
    ("1e3", undefined, "1"),
]
FLOATS: list[tuple[Any, ...]] = [
    ("3.14abc", "3.14"),
    ("  -.5e1x", "-5"),
    (".", "NaN"),
    ("5.", "5"),
    ("Infinityx", "Infinity"),
    ("-Infinity", "-Infinity"),
    ("", "NaN"),
    ("1e1000", "Infinity"),
]


def outcome(value: Any, method: str, args: tuple[Any, ...]) -> str:
    """What Node's inspection shows for a call, or the error it ends with."""
    try:
        return inspect(invoke(value, method, *args))
    except ErrorValue as error:
        return str(error)


@pytest.mark.parametrize(("value", "method", "args", "expected"), METHODS)
def test_methods_of_numbers_give_what_javascript_gives(
    value: Any, method: str, args: tuple[Any, ...], expected: str
) -> None:
    """A method of a number or boolean has the result that Node prints."""
    assert expected == outcome(value, method, args)


@pytest.mark.parametrize(("value", "expected"), TEXTS)
def test_numbers_print_as_in_javascript(value: Any, expected: str) -> None:
    """`String(n)` has the digits and the form that Node prints."""
    assert expected == inspect(text(value))


@pytest.mark.parametrize(("source", "radix", "expected"), INTEGERS)
def test_integers_are_read_from_the_start_of_a_text(source: str, radix: Any, expected: str) -> None:
    """`parseInt` reads as far as there are digits."""
    assert expected == inspect(call(GLOBALS["parseInt"], source, radix))


@pytest.mark.parametrize(("source", "expected"), FLOATS)
def test_decimals_are_read_from_the_start_of_a_text(source: str, expected: str) -> None:
    """`parseFloat` reads as far as there is a number."""
    assert expected == inspect(call(GLOBALS["parseFloat"], source))
