"""Expectations of tests: errors with a comparison of expected and found values. Objects are compared by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from koi_lang.errors import ExpectationError, UnscriptedError
from koi_lang.js import operators
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue, caught
from koi_lang.js.inspect_value import console_text, inspect
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.own_properties import is_array, is_record
from koi_lang.js.promises import Promise
from koi_lang.js.undefined import Value, undefined

DEPTH = 6
EQUALITY = ("==", "===", "!=", "!==")
MEANINGS = {
    "==": "the two sides are not equal", "===": "the two sides are not the same",
    "!=": "the two sides are equal", "!==": "the two sides are the same",
    "<": "the left side is not less than the right side", ">": "the left side is not greater than the right side",
    "<=": "the left side is greater than the right side", ">=": "the left side is less than the right side",
    "in": "the right side has no such member", "instanceof": "the left side is no such object",
}  # fmt: skip
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operators.equal, "===": operators.same, "<": operators.less, ">": operators.greater,
    "<=": operators.less_equal, ">=": operators.greater_equal, "in": operators.has,
    "instanceof": operators.instance_of, "!=": lambda a, b: not operators.equal(a, b),
    "!==": lambda a, b: not operators.same(a, b),
}  # fmt: skip
Difference: TypeAlias = tuple[str, Value, Value]


def expect(value: Value) -> None:
    """`expect value`. Raises ExpectationError."""
    if isinstance(value, Promise):
        raise _not_awaited()
    if not operators.truth(value):
        raise ExpectationError(f"this is not true, it is `{inspect(value)}`")


def compare(operator: str, left: Value, right: Value) -> None:
    """`expect left == right` and other comparisons. Raises ExpectationError, which shows both sides."""
    if isinstance(left, Promise) or isinstance(right, Promise):
        raise _not_awaited()
    if operator not in EQUALITY or not (_has_content(left) and _has_content(right)):
        if not OPERATORS[operator](left, right):
            raise ExpectationError(MEANINGS[operator], details=_sides(left, right))
        return
    found = difference(left, right)
    if (found is None) == operator.startswith("!"):
        raise ExpectationError(MEANINGS[operator], details=(*_sides(left, right), *_difference_lines(found)))


def expect_failure(text: str, error: Exception | None = None) -> None:
    """`expect … fails "text"`. Raises ExpectationError when there is no error, or one that says something else."""
    if isinstance(error, (ExpectationError, UnscriptedError)):
        raise error
    if error is None:
        raise ExpectationError("this did not fail", details=(f"expected a failure with: {text}",))
    value = caught(error)
    said = str(value) if isinstance(value, ErrorValue) else console_text(value)
    if text not in said:
        details = (f"expected: {text}", f"failed with: {said}")
        raise ExpectationError("this failed with another message", details=details) from error


def _not_awaited() -> ExpectationError:
    return ExpectationError("this is a promise, whose value comes later", help="write `await` in front of it.")


def _sides(left: Value, right: Value) -> tuple[str, str]:
    return f"left:  {inspect(left, DEPTH)}", f"right: {inspect(right, DEPTH)}"


def _difference_lines(found: Difference | None) -> tuple[str, ...]:
    """A line for the first difference, where it is not the whole."""
    if found is None or not found[0]:
        return ()
    path, left, right = found
    return (f"they differ at `{path.removeprefix('.')}`: {inspect(left)} and {inspect(right)}",)


# ---------------------------------------------------------------- content


def _has_content(value: Value) -> bool:
    return is_array(value) or is_record(value) or isinstance(value, (DateValue, MapValue, SetValue))


def difference(left: Value, right: Value) -> Difference | None:
    """The first difference of two values, with both sides; None when their content is equal.

    Arrays have the same items in order, objects the same members in any order, and a member that is undefined counts
    as missing. What they hold is compared as `===` does, and NaN is the same as NaN.
    """
    waiting: list[Difference] = [("", left, right)]
    seen: dict[tuple[int, int], Difference] = {}
    while waiting:
        path, a, b = waiting.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        inner = _parts(path, a, b)
        if inner is None:
            return path, a, b
        seen[id(a), id(b)] = path, a, b  # kept, so that nothing else gets their ids
        waiting += reversed(list(inner))
    return None


def _parts(path: str, a: Value, b: Value) -> Iterator[Difference] | None:
    """The parts of two values that must be the same; None when the values differ already."""
    if is_array(a) and is_array(b):
        return _items(path, list(a), list(b))
    if is_record(a) and is_record(b):
        names = [*a, *(name for name in b if name not in a)]
        return ((f"{path}.{name}", a.get(name, undefined), b.get(name, undefined)) for name in names)
    if isinstance(a, (MapValue, SetValue)) and type(a) is type(b):
        pairs = [[key, value] for key, value in a.pairs()], [[key, value] for key, value in b.pairs()]
        return _items(path, *pairs)
    if isinstance(a, DateValue) and isinstance(b, DateValue):
        a, b = a.ms, b.ms
    is_same = operators.same(a, b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)
    return iter(()) if is_same else None


def _items(path: str, a: list[Value], b: list[Value]) -> Iterator[Difference]:
    for index in range(max(len(a), len(b))):
        yield f"{path}[{index}]", _item(a, index), _item(b, index)


def _item(items: list[Value], index: int) -> Value:
    """An item, or undefined behind the end; a hole at the end is not the same as an item that is undefined."""
    return items[index] if index < len(items) else NOTHING


class _Nothing:
    """Stands for an item behind the end of an array."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
