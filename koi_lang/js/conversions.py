"""Any value to a truth value, a number, a text, or the name of a member."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

from koi_lang.js.calling import apply_to, function_name
from koi_lang.js.environment import note_rounding
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.number_format import (
    INFINITY,
    MAX_EXACT,
    MIN_EXACT,
    NAN,
    double,
    fit,
    number_text,
    parse_number,
    to_compact,
)
from koi_lang.js.undefined import Undefined, Value, nullish, undefined

PRIMITIVES = (str, int, float, bool, type(None), Undefined)


def is_number(value: Value) -> TypeGuard[int | float]:
    """Whether a value is a number (booleans are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def truth(value: Value) -> bool:
    """Whether a value counts as true: all but false, null, undefined, 0, NaN and the empty text."""
    if value is True:
        return True
    if value is False or value is None or value is undefined:
        return False
    kind = type(value)
    if kind is str or kind is int:
        return bool(value)
    if isinstance(value, float):
        return value == value and value != 0
    return bool(value) if isinstance(value, (str, int)) else True


def number(value: Value) -> int | float:
    """A value to a number, as unary plus and `Number` do."""
    if type(value) is int:
        return value
    if type(value) is float:
        return to_compact(value)
    if isinstance(value, bool) or value is None:
        return 1 if value else 0
    if isinstance(value, float):
        return to_compact(value)
    if isinstance(value, int):
        return fit(value)
    if isinstance(value, str):
        return parse_number(value)
    return NAN if value is undefined else number(primitive(value, "number"))


def to_double(n: int | float) -> int | float:
    """A number as the double that is nearest to it; a difference is noted, once a run."""
    if type(n) is not int or MIN_EXACT <= n <= MAX_EXACT:
        return n
    note_rounding(n)
    return to_compact(double(n))


def integer(value: Value, default: int = 0) -> int:
    """A value to a whole number for use as a position; undefined gives the default, NaN 0, infinities ±2**53."""
    if type(value) is int:
        return value
    if value is undefined:
        return default
    n = number(value)
    return int(max(-(2**53), min(n, 2**53))) if n == n else 0


def text(value: Value) -> str:
    """A value to text, as `String(v)` and templates do."""
    if type(value) is str:
        return value
    if type(value) is int and MIN_EXACT <= value <= MAX_EXACT:
        return str(value)
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if isinstance(value, int):
            note_rounding(value)
        return number_text(value)
    if value is None:
        return "null"
    if isinstance(value, str):
        return str.__str__(value)
    return repr(value) if value is undefined else text(primitive(value, "string"))


def template(*parts: Value) -> str:
    """The parts of a template literal to its text."""
    return "".join([part if type(part) is str else text(part) for part in parts])


def join_text(items: Iterable[Value], separator: str = ",") -> str:
    """Items to one text; null and undefined are empty."""
    return separator.join(["" if nullish(item) else text(item) for item in items])


def primitive(value: Value, hint: str = "default") -> Value:
    """An object to a value without members; hint is `number`, `string` or `default`."""
    if isinstance(value, PRIMITIVES):
        return value
    if isinstance(value, dict):
        return _of_record(value, ("toString", "valueOf") if hint == "string" else ("valueOf", "toString"))
    if isinstance(value, list | tuple):
        return join_text(value)
    convert = getattr(type(value), "__koi_primitive__", None)
    if convert is not None:
        return convert(value, hint)
    if hint != "string" and hasattr(type(value), "__float__"):
        return to_compact(float(value))
    if callable(value):
        return f"function {function_name(value)}() {{ [native code] }}"
    return str(value)


def _of_record(record: dict[str, Value], names: tuple[str, str]) -> Value:
    for name in names:
        if callable(record.get(name)):
            result = apply_to(record, record[name])
            if isinstance(result, PRIMITIVES):
                return result
    if "toString" in record and "valueOf" in record:
        raise TypeErrorValue("Cannot convert object to primitive value")
    return "[object Object]"


def property_key(value: Value) -> str:
    """A value between brackets to the name of a member."""
    return value if type(value) is str else text(value)


def position(key: Value) -> int | None:
    """A member's name to a position in an array, None when it is no whole number from 0."""
    if type(key) is int:
        return key if key >= 0 else None
    if isinstance(key, float) and 0 <= key < INFINITY and key == int(key):
        return int(key)
    if not isinstance(key, str) or not key.isascii() or not key.isdigit():
        return None
    return int(key) if len(key) < 17 and (key == "0" or key[0] != "0") else None


def to_int32(value: Value) -> int:
    """The last 32 bits of a number, of which the first is the sign."""
    x = value if type(value) is int else number(value)
    x = x if MIN_EXACT <= x <= MAX_EXACT else double(x)
    whole = x if isinstance(x, int) else int(x) if math.isfinite(x) else 0
    return whole if -0x80000000 <= whole <= 0x7FFFFFFF else ((whole + 0x80000000) & 0xFFFFFFFF) - 0x80000000
