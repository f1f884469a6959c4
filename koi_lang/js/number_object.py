"""The methods of numbers and booleans, and the globals `Number`, `Boolean`, `parseInt` and their kin."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from koi_lang.js.conversions import integer, is_number, number, text, to_double, truth
from koi_lang.js.errors import RangeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.number_format import (
    INFINITY,
    MAX_EXACT,
    NAN,
    double,
    exponential,
    parse_float,
    parse_int,
    radix_text,
)
from koi_lang.js.undefined import Value, undefined
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.js import intl_objects
else:
    intl_objects = lazy_module("koi_lang.js.intl_objects")

METHODS = MethodTable()
FLAGS = MethodTable()
STATICS = MethodTable()
GLOBALS = MethodTable()


def _finite(n: Value) -> bool:
    return math.isfinite(double(n))


def _round_shifted(n: int | float, shift: int) -> int:
    """|n| times 10**shift to the nearest integer, halves upward, exactly."""
    top, bottom = abs(to_double(n)).as_integer_ratio()
    top, bottom = (top * 10**shift, bottom) if shift >= 0 else (top, bottom * 10**-shift)
    return (2 * top + bottom) // (2 * bottom)


def _digits(value: Value, least: int, method: str) -> int:
    count = integer(value)
    if not least <= count <= 100:
        what = "digits argument" if method == "toFixed" else "argument"
        raise RangeErrorValue(f"{method}() {what} must be between {least} and 100")
    return count


def _format_fixed(n: int | float, places: int) -> str:
    whole = str(_round_shifted(n, places)).rjust(places + 1, "0")
    return f"{whole[:-places]}.{whole[-places:]}" if places else whole


@METHODS.add_as("toFixed")
def _to_fixed(n: Value, digits: Value = 0) -> str:
    places = _digits(digits, 0, "toFixed")
    if not _finite(n) or abs(n) >= 1e21:
        return text(n)
    return ("-" if n < 0 and (_round_shifted(n, places) or n) else "") + _format_fixed(n, places)


def _leading_digits(n: int | float, count: int) -> tuple[str, int]:
    """The first `count` digits of |n| and its power of ten."""
    if n == 0:
        return "0" * count, 0
    exponent = math.floor(math.log10(abs(n)))
    digits = str(_round_shifted(n, count - 1 - exponent))
    if len(digits) < count:
        exponent -= 1
        digits = str(_round_shifted(n, count - 1 - exponent))
    if len(digits) > count:
        exponent += 1
        digits = str(_round_shifted(n, count - 1 - exponent))
    return digits, exponent


@METHODS.add_as("toPrecision")
def _to_precision(n: Value, digits: Value = undefined) -> str:
    if digits is undefined or not _finite(n):
        return text(n)
    count = _digits(digits, 1, "toPrecision")
    text_digits, exponent = _leading_digits(n, count)
    sign = "-" if n < 0 else ""
    if exponent < -6 or exponent >= count:
        return sign + exponential(text_digits, exponent)
    if exponent >= 0:
        whole, fraction = text_digits[: exponent + 1], text_digits[exponent + 1 :]
        return sign + whole + (f".{fraction}" if fraction else "")
    return f"{sign}0.{'0' * (-exponent - 1)}{text_digits}"


@METHODS.add_as("toExponential")
def _to_exponential(n: Value, digits: Value = undefined) -> str:
    if not _finite(n):
        return text(n)
    sign = "-" if n < 0 else ""
    if digits is not undefined:
        return sign + exponential(*_leading_digits(n, _digits(digits, 0, "toExponential") + 1))
    shortest = next(count for count in range(1, 18) if float(_exponential_text(n, count)) == abs(n))
    return sign + _exponential_text(n, shortest)


def _exponential_text(n: Value, count: int) -> str:
    return exponential(*_leading_digits(n, count))


@METHODS.add_as("toString")
def _to_string(n: Value, radix: Value = undefined) -> str:
    base = integer(radix, 10)
    if not 2 <= base <= 36:
        raise RangeErrorValue("toString() radix argument must be between 2 and 36")
    return text(n) if base == 10 or not _finite(n) else radix_text(to_double(n), base)


@METHODS.add_as("toLocaleString")
def _to_locale_string(n: Value, locales: Value = undefined, options: Value = undefined) -> str:
    """As `Intl.NumberFormat` has it."""
    return intl_objects.NumberFormatValue(locales, options).format(n)


@METHODS.add_as("valueOf")
def _value_of(n: Value) -> Value:
    return n


@FLAGS.add_as("toString")
def _flag_text(flag: bool) -> str:
    return text(flag)


@FLAGS.add_as("valueOf")
def _flag_value(flag: bool) -> bool:
    return flag


@STATICS.add_as("isInteger")
def _is_integer(value: Value = undefined) -> bool:
    return is_number(value) and _finite(value) and value == math.floor(value)


@STATICS.add_as("isSafeInteger")
def _is_safe_integer(value: Value = undefined) -> bool:
    return _is_integer(value) and abs(value) < MAX_EXACT


@STATICS.add_as("isFinite")
def _is_finite_number(value: Value = undefined) -> bool:
    return is_number(value) and _finite(value)


@STATICS.add_as("isNaN")
def _is_nan_number(value: Value = undefined) -> bool:
    return isinstance(value, float) and value != value


@GLOBALS.add_as("isFinite")
def _is_finite(value: Value = undefined) -> bool:
    return _finite(number(value))


@GLOBALS.add_as("isNaN")
def _is_nan(value: Value = undefined) -> bool:
    n = number(value)
    return n != n


@GLOBALS.add_as("parseInt")
@STATICS.add_as("parseInt")
def _parse_int(value: Value = undefined, radix: Value = undefined) -> int | float:
    # The radix is one of 32 bits: https://tc39.es/ecma262/#sec-parseint-string-radix
    return parse_int(text(value), (integer(radix) + 2**31) % 2**32 - 2**31)


@GLOBALS.add_as("parseFloat")
@STATICS.add_as("parseFloat")
def _parse_float(value: Value = undefined) -> int | float:
    return parse_float(text(value))


def _number(*values: Value) -> int | float:
    return number(values[0]) if values else 0


def _boolean(*values: Value) -> bool:
    return bool(values) and truth(values[0])


_LIMITS = {
    "MAX_SAFE_INTEGER": MAX_EXACT - 1, "MIN_SAFE_INTEGER": 1 - MAX_EXACT, "MAX_VALUE": math.nextafter(INFINITY, 0),
    "MIN_VALUE": math.nextafter(0, 1), "EPSILON": 2.0**-52, "NaN": NAN, "POSITIVE_INFINITY": INFINITY,
    "NEGATIVE_INFINITY": -INFINITY,
}  # fmt: skip
NUMBER = Constructor("Number", _number, _number, lambda value: False, MappingProxyType({**STATICS, **_LIMITS}))
BOOLEAN = Constructor("Boolean", _boolean, _boolean, lambda value: False)
