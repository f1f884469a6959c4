"""A registry query to a test that a value passes or not.

A query is an object of field names and conditions, all of which must hold. A name may be a dotted path (`user.tags.0`).
A condition is a value to be equal to, or an object of operators. A missing field passes `$ne`, `$nin` and
`$exists: false` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koi_lang.diagnostics import nearest
from koi_lang.errors import RegistryError
from koi_lang.js.bounded_regex import BoundedRegex
from koi_lang.js.conversions import is_number
from koi_lang.runtime.registry.entries import kind_of

Test = Callable[[Any], bool]

_MISSING: Final = object()


def matches(value: object, query: object) -> bool:
    """Whether a value passes a query; null passes none.

    Raises:
        RegistryError: the query is malformed.
    """
    return compile_query(query)(value)


def compile_query(query: object) -> Test:
    """The test that a query stands for.

    Raises:
        RegistryError: the query is not an object, or an operator is unknown or has an unusable operand.
        PatternError: a regular expression is unusable; the test raises it, too, when one takes too long.
    """
    try:
        test = _object_test(query, "a registry query")
    except RecursionError as error:
        raise RegistryError("the registry query is nested too deep") from error
    return lambda value: value is not None and test(value)


def _object_test(query: object, what: str) -> Test:
    if not isinstance(query, Mapping):
        raise RegistryError(f"{what} must be an object, not {kind_of(query)}", help=_EXAMPLE)
    tests = [_member_test(str(name), operand) for name, operand in query.items()]
    return lambda value: all(test(value) for test in tests)


def _member_test(name: str, operand: object) -> Test:
    if name.startswith("$"):
        return _operator_test(name, operand)
    steps = name.split(".")
    test = _condition_test(operand)
    return lambda value: test(_field(value, name, steps))


def _condition_test(condition: object) -> Test:
    if not isinstance(condition, Mapping):
        return _equal_to(condition)
    if not condition:
        return lambda value: value is not _MISSING and value is not None
    tests = [_operator_test(str(name), operand) for name, operand in condition.items()]
    return lambda value: all(test(value) for test in tests)


def _operator_test(name: str, operand: object) -> Test:
    build = _OPERATORS.get(name)
    if build is None:
        raise _unknown_operator(name)
    return build(operand)


def _unknown_operator(name: str) -> RegistryError:
    near = nearest(name if name.startswith("$") else f"${name}", _OPERATORS)
    hint = f"Did you mean `{near}`? " if near else ""
    known = ", ".join(f"`{operator}`" for operator in _OPERATORS)
    nested = "" if name.startswith("$") else f' For a field inside another write a dotted name: `"outer.{name}"`.'
    return RegistryError(f"unknown registry operator `{name}`", help=f"{hint}The operators are {known}.{nested}")


def _field(value: Any, name: str, steps: Sequence[str]) -> Any:
    """The part of a value that a dotted name leads to; a member with just that name comes first."""
    if isinstance(value, Mapping) and name in value:
        return value[name]
    for step in steps:
        value = _step(value, step)
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, _MISSING)
    if not isinstance(value, (list, tuple)) or not (step.isascii() and step.isdigit()):
        return _MISSING
    # More digits than any list has items; also spares converting thousands of them.
    index = int(step) if len(step) < 16 else len(value)
    return value[index] if index < len(value) else _MISSING


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values by content; true is not 1."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    return type(left) is type(right) and bool(left == right)


def _equal_to(operand: object) -> Test:
    return lambda value: _equal(value, operand)


def _different_from(operand: object) -> Test:
    return lambda value: not _equal(value, operand)


def _compare_ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object], Test]:
    """An operator that puts a number beside a number or text beside text; anything else does not pass."""

    def build(operand: object) -> Test:
        if is_number(operand):
            return lambda value: is_number(value) and compare(value, operand)
        if isinstance(operand, str):
            return lambda value: isinstance(value, str) and compare(value, operand)
        return lambda value: False

    return build


def _one_of(operand: object) -> Test:
    choices = _list(operand, "$in")
    return lambda value: any(_equal(value, choice) for choice in choices)


def _none_of(operand: object) -> Test:
    choices = _list(operand, "$nin")
    return lambda value: not any(_equal(value, choice) for choice in choices)


def _exists(operand: object) -> Test:
    if not isinstance(operand, bool):
        raise RegistryError(f"`$exists` takes true or false, not {kind_of(operand)}")
    return lambda value: (value is not _MISSING) is operand


def _regex(operand: object) -> Test:
    found = _pattern_test(operand)
    return lambda value: isinstance(value, str) and found(value)


def _pattern_test(operand: Any) -> Callable[[str], bool]:
    if isinstance(operand, str):
        return BoundedRegex(operand).is_in
    source, flags = getattr(operand, "source", None), getattr(operand, "flags", None)
    if isinstance(source, str) and isinstance(flags, str):
        return BoundedRegex(source, flags).is_in
    test = getattr(operand, "test", None)
    if callable(test):
        return lambda text: bool(test(text))
    raise RegistryError(f"`$regex` takes text or a regular expression, not {kind_of(operand)}")


def _all_of(operand: object) -> Test:
    tests = [_object_test(query, "each part of `$and`") for query in _list(operand, "$and")]
    return lambda value: all(test(value) for test in tests)


def _any_of(operand: object) -> Test:
    tests = [_object_test(query, "each part of `$or`") for query in _list(operand, "$or")]
    return lambda value: any(test(value) for test in tests)


def _not(operand: object) -> Test:
    test = _object_test(operand, "the operand of `$not`")
    return lambda value: not test(value)


def _list(operand: object, operator: str) -> Sequence[Any]:
    if isinstance(operand, (list, tuple)):
        return operand
    raise RegistryError(f"`{operator}` takes a list, not {kind_of(operand)}", help=_EXAMPLE)


_EXAMPLE = (
    'A query looks like `{ age: { $gte: 18 }, "address.city": "Oslo", $or: [{ vip: true }, { visits: { $gt: 9 } }] }`.'
)

_OPERATORS: Mapping[str, Callable[[object], Test]] = {
    "$eq": _equal_to,
    "$ne": _different_from,
    "$gt": _compare_ordered(lambda value, limit: bool(value > limit)),
    "$gte": _compare_ordered(lambda value, limit: bool(value >= limit)),
    "$lt": _compare_ordered(lambda value, limit: bool(value < limit)),
    "$lte": _compare_ordered(lambda value, limit: bool(value <= limit)),
    "$in": _one_of,
    "$nin": _none_of,
    "$regex": _regex,
    "$exists": _exists,
    "$and": _all_of,
    "$or": _any_of,
    "$not": _not,
}
