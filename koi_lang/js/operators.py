"""The operators of JavaScript on Python values."""

from __future__ import annotations

import math
from functools import reduce

from koi_lang.js.calling import describe
from koi_lang.js.comparison import equal, greater, greater_equal, less, less_equal, same
from koi_lang.js.conversions import number, primitive, template, text, to_double, to_int32, truth
from koi_lang.js.environment import note_rounding
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import Constructor
from koi_lang.js.number_format import INFINITY, MAX_EXACT, MIN_EXACT, NAN, double, fit, to_compact
from koi_lang.js.properties import has
from koi_lang.js.undefined import Value, nullish, undefined

__all__ = [
    "add", "and_bits", "decrement", "divide", "equal", "greater", "greater_equal", "has", "increment", "instance_of",
    "invert_bits", "less", "less_equal", "multiply", "negate", "nullish", "number", "or_bits", "power", "remainder",
    "same", "shift_left", "shift_right", "shift_unsigned", "subtract", "template", "text", "truth", "type_of",
    "xor_bits",
]  # fmt: skip


def add(a: Value, b: Value, *more: Value) -> Value:
    """`a + b + …`, from the left: texts are joined, everything else is counted."""
    if more:
        return reduce(add, more, add(a, b))
    if type(a) is int is type(b):
        total = a + b
        return total if MIN_EXACT <= total <= MAX_EXACT else _round_result(total, a, b)
    if type(a) is str is type(b):
        return a + b
    return _add(a, b)


def _add(a: Value, b: Value) -> Value:
    if type(a) is str and type(b) is int:
        return a + text(b)
    a, b = primitive(a), primitive(b)
    if isinstance(a, str) or isinstance(b, str):
        return text(a) + text(b)
    a, b = number(a), number(b)
    return fit(a + b) if type(a) is int and type(b) is int else to_compact(a + b)


def _round_result(result: int, *operands: int) -> int | float:
    """An exact result as the number that a double would hold."""
    for operand in operands:
        if not MIN_EXACT <= operand <= MAX_EXACT:
            note_rounding(operand)
    return to_compact(double(result))


def subtract(a: Value, b: Value) -> int | float:
    """`a - b`."""
    if type(a) is int is type(b):
        total = a - b
        return total if MIN_EXACT <= total <= MAX_EXACT else _round_result(total, a, b)
    return to_compact(double(number(a) - number(b)))


def multiply(a: Value, b: Value) -> int | float:
    """`a * b`."""
    if type(a) is not int or type(b) is not int:
        a, b = number(a), number(b)
    if type(a) is int is type(b):
        product = a * b
        if 0 < product <= MAX_EXACT:
            return product
        if product:
            return product if MIN_EXACT <= product < 0 else _round_result(product, a, b)
        return -0.0 if (a < 0) != (b < 0) else 0
    return to_compact(a * b)


def divide(a: Value, b: Value) -> int | float:
    """`a / b`; by zero it is infinite or NaN."""
    if type(a) is not int or type(b) is not int:
        a, b = number(a), number(b)
    if b == 0:
        if a == 0 or a != a:
            return NAN
        return INFINITY if (a < 0) == (math.copysign(1, b) < 0) else -INFINITY
    return to_compact(a / b)


def remainder(a: Value, b: Value) -> int | float:
    """`a % b`, with the sign of `a`."""
    if type(a) is int is type(b) and 0 <= a <= MAX_EXACT >= b > 0:
        return a % b
    a, b = to_double(number(a)), to_double(number(b))
    if b == 0 or a != a or b != b or math.isinf(a):
        return NAN
    if type(a) is int and type(b) is int and a >= 0:
        return a % abs(b)
    return to_compact(math.fmod(a, b))


def power(a: Value, b: Value) -> int | float:
    """`a ** b`."""
    a, b = number(a), number(b)
    if type(a) is int and type(b) is int and b >= 0 and a.bit_length() * b <= 64:
        return fit(a**b)
    if b != b or (abs(a) == 1 and math.isinf(b)):
        return NAN
    return to_compact(_power(float(a), float(b)))


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return _beyond(a, b)
    except ValueError:
        return _beyond(a, b) if a == 0 else NAN


def _beyond(a: float, b: float) -> float:
    """Infinity with the sign that `a ** b` has."""
    return -INFINITY if math.copysign(1, a) < 0 and abs(math.fmod(b, 2)) == 1 else INFINITY


def and_bits(a: Value, b: Value) -> int:
    """`a & b`."""
    return to_int32(a) & to_int32(b)


def or_bits(a: Value, b: Value) -> int:
    """`a | b`."""
    return to_int32(a) | to_int32(b)


def xor_bits(a: Value, b: Value) -> int:
    """`a ^ b`."""
    return to_int32(a) ^ to_int32(b)


def invert_bits(a: Value) -> int:
    """`~a`."""
    return ~to_int32(a)


def shift_left(a: Value, b: Value) -> int:
    """`a << b`; of `b` the last five bits count."""
    first = to_int32(a)
    return to_int32(first << (to_int32(b) & 31))


def shift_right(a: Value, b: Value) -> int:
    """`a >> b`, which keeps the sign."""
    first = to_int32(a)
    return first >> (to_int32(b) & 31)


def shift_unsigned(a: Value, b: Value) -> int:
    """`a >>> b`, with zeros from the left."""
    first = to_int32(a)
    return (first & 0xFFFFFFFF) >> (to_int32(b) & 31)


def negate(a: Value) -> int | float:
    """`-a`."""
    a = number(a)
    return -a if a else (0 if math.copysign(1, a) < 0 else -0.0)


def increment(a: Value) -> int | float:
    """The number after `a`."""
    return a + 1 if type(a) is int and a < MAX_EXACT else subtract(a, -1)


def decrement(a: Value) -> int | float:
    """The number before `a`."""
    return a - 1 if type(a) is int and a > MIN_EXACT else subtract(a, 1)


def type_of(value: Value) -> str:
    """What `typeof value` says."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if value is undefined:
        return "undefined"
    return "function" if callable(value) else "object"


def instance_of(value: Value, kind: Value) -> bool:
    """`value instanceof kind`, for the globals of the language and for Python classes.

    Raises:
        TypeErrorValue: the right side cannot have instances.
    """
    if isinstance(kind, Constructor):
        return kind.holds(value)
    if isinstance(kind, type):
        return isinstance(value, kind) or isinstance(getattr(value, "exception", None), kind)
    if callable(kind):
        return False
    raise TypeErrorValue(f"Right-hand side of 'instanceof' is not callable: {describe(kind)}")
