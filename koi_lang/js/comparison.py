"""The comparisons of JavaScript on Python values."""

from __future__ import annotations

from types import MethodType
from typing import Any

from koi_lang.js.conversions import number, primitive
from koi_lang.js.undefined import Value, nullish

# The classes whose values Python orders as JavaScript does.
ORDERED = (int, str, float)


def same(a: Value, b: Value) -> bool:
    """`a === b`: primitives by value and kind, everything else by identity."""
    if type(a) is int and type(b) is int:
        return a == b
    if type(a) is str and type(b) is str:
        return a == b
    if a is b:
        return a == a if type(a) is float else True
    if isinstance(a, str):
        return isinstance(b, str) and a == b
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    if isinstance(a, int | float):
        return isinstance(b, int | float) and a == b
    return type(a) is MethodType and type(b) is MethodType and a == b


def equal(a: Value, b: Value) -> bool:
    """`a == b`: null equals undefined, and kinds are converted where they differ."""
    if nullish(a) or nullish(b):
        return nullish(a) and nullish(b)
    simple_a, simple_b = isinstance(a, str | int | float), isinstance(b, str | int | float)
    if (not simple_a and not simple_b) or (isinstance(a, str) and isinstance(b, str)):
        return same(a, b)
    a, b = primitive(a), primitive(b)
    return same(a, b) if type(a) is type(b) else number(a) == number(b)


def less(a: Value, b: Value) -> bool:
    """`a < b`."""
    if type(a) is int and type(b) is int:
        return a < b
    kind = type(a)
    if kind is not type(b) or kind not in ORDERED:
        a, b = _comparable(a, b)
    return bool(a < b)


def less_equal(a: Value, b: Value) -> bool:
    """`a <= b`."""
    if type(a) is int and type(b) is int:
        return a <= b
    kind = type(a)
    if kind is not type(b) or kind not in ORDERED:
        a, b = _comparable(a, b)
    return bool(a <= b)


def greater(a: Value, b: Value) -> bool:
    """`a > b`."""
    if type(a) is int and type(b) is int:
        return a > b
    kind = type(a)
    if kind is not type(b) or kind not in ORDERED:
        a, b = _comparable(a, b)
    return bool(a > b)


def greater_equal(a: Value, b: Value) -> bool:
    """`a >= b`."""
    if type(a) is int and type(b) is int:
        return a >= b
    kind = type(a)
    if kind is not type(b) or kind not in ORDERED:
        a, b = _comparable(a, b)
    return bool(a >= b)


def _comparable(a: Value, b: Value) -> tuple[Any, Any]:
    """Two texts, or else two numbers."""
    left, right = primitive(a, "number"), primitive(b, "number")
    return (left, right) if isinstance(left, str) and isinstance(right, str) else (number(left), number(right))
