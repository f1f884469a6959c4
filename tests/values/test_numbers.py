"""Numbers as text and back, and their methods, against what Node gives."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.call_helpers import call, invoke
from koi_lang.js.errors import ErrorValue, RangeErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.intl_objects import NumberForm
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


@pytest.mark.parametrize(
    ("options", "n", "expected"),
    [
        ({"style": "unit", "unit": "kilometer"}, 123456, "123,456 km"),
        ({"maximumSignificantDigits": 3}, 123456, "123,000"),
        ({"signDisplay": "always"}, 123456, "+123,456"),
        ({"notation": "compact"}, 123456, "123K"),
        ({"notation": "compact"}, 999950, "1M"),
        ({"notation": "compact", "compactDisplay": "long"}, -1500, "-1.5 thousand"),
        ({"notation": "compact"}, 1000000000000000, "1000T"),
        ({"notation": "scientific"}, 12345, "1.235E4"),
        ({"notation": "engineering"}, -0.00005, "-50E-6"),
        ({"style": "currency", "currency": "EUR", "currencyDisplay": "code"}, 123456, "EUR\u00a0123,456.00"),
        ({"style": "currency", "currency": "KRW"}, 123456.5, "₩123,457"),
        ({"style": "currency", "currency": "kwd"}, 1, "KWD\u00a01.000"),
        ({"style": "currency", "currency": "XAF"}, -1.5, "-FCFA\u00a02"),
        ({"style": "currency", "currency": "CAD", "currencySign": "accounting"}, -5, "(CA$5.00)"),
        ({"style": "currency", "currency": "USD", "notation": "compact", "compactDisplay": "long"}, 1234, "$1.2K"),
        ({"minimumSignificantDigits": 3, "maximumSignificantDigits": 3}, 9.999, "10.0"),
        ({"minimumSignificantDigits": 3}, 0, "0.00"),
        ({"signDisplay": "exceptZero"}, -0.0001, "0"),
        ({"signDisplay": "never"}, -1, "1"),
        ({"signDisplay": "negative"}, -0.0001, "0"),
        ({"useGrouping": "min2"}, 1234, "1234"),
        ({"useGrouping": False}, 12345, "12345"),
        ({"style": "percent", "signDisplay": "always"}, 0.256, "+26%"),
        ({"style": "unit", "unit": "day"}, 1, "1 day"),
        ({"style": "unit", "unit": "foot", "unitDisplay": "long"}, 2, "2 feet"),
        ({"style": "unit", "unit": "mile-per-hour"}, 60, "60 mph"),
        ({"style": "unit", "unit": "celsius", "unitDisplay": "long"}, 1, "1 degree Celsius"),
        ({"style": "unit", "unit": "liter-per-kilometer", "unitDisplay": "long"}, 7.5, "7.5 liters per kilometer"),
        ({"style": "currency", "currency": "JPY"}, NAN, "¥NaN"),
        ({"style": "unit", "unit": "gigabyte"}, -INFINITY, "-∞ GB"),
        ({"localeMatcher": "lookup"}, 5, "5"),
    ],
)
def test_options_of_number_formats(options: dict[str, Any], n: float, expected: str) -> None:
    """Numbers are written as Node writes them in American English."""
    assert expected == NumberForm.of(options).write(n)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"notaton": "compact"}, RangeErrorValue, "did you mean `notation`"),
        ({"style": "money"}, RangeErrorValue, '"money" is no value of `style`, only decimal, percent, currency, unit'),
        ({"style": "currency"}, TypeErrorValue, "`currency` is needed"),
        ({"style": "currency", "currency": "EU"}, RangeErrorValue, "Invalid currency code : EU"),
        ({"currencyDisplay": "name"}, RangeErrorValue, "only symbol, code"),
        ({"style": "unit", "unit": "parsec"}, RangeErrorValue, "parsec"),
        ({"maximumFractionDigits": 101}, RangeErrorValue, "maximumFractionDigits value is out of range"),
        ({"minimumFractionDigits": 5, "maximumFractionDigits": 2}, RangeErrorValue, "value is out of range"),
        ({"minimumSignificantDigits": "x"}, RangeErrorValue, "value is out of range"),
        (5, TypeErrorValue, "options are an object"),
    ],
)
def test_odd_options_of_number_formats_are_refused(options: Any, error: type[Exception], message: str) -> None:
    """Nothing is shown another way than it was asked for, in silence."""
    with pytest.raises(error, match=message):
        NumberForm.of(options)
