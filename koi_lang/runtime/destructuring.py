"""Pieces of the language that need a little run-time help: boxes, destructuring, loops that count, late stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

from koi_lang.js.call_helpers import get, iterate, put, spread
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.generators import end_walk
from koi_lang.js.number_format import MAX_EXACT, MIN_EXACT
from koi_lang.js.operators import add, greater, greater_equal, less, less_equal, nullish, truth
from koi_lang.js.undefined import undefined


def named(name: str) -> Callable[[Any], Any]:
    """Tell a function its name in Koi, which is not the one it has in Python."""

    def tell(function: Any) -> Any:
        function.__koi_name__ = name
        return function

    return tell


class Box:
    """A variable that a loop and closures share; every turn of the loop makes a new one."""

    __slots__ = ("value",)

    def __init__(self, value: Any = undefined) -> None:
        self.value = value

    def put(self, value: Any) -> Any:
        """Store a value and give it."""
        self.value = value
        return value


def put_last(value: Any, holder: Any, key: Any) -> Any:
    """Store into a member; the value comes first because it was evaluated first."""
    return put(holder, key, value)


def either(value: Any, other: Any) -> Any:
    """`value || other`."""
    return value if truth(value) else other


def both(value: Any, other: Any) -> Any:
    """`value && other`."""
    return other if truth(value) else value


def coalesce(value: Any, other: Any) -> Any:
    """`value ?? other`."""
    return other if nullish(value) else value


def peek(holder: Any, key: Any) -> Any:
    """A member, or undefined where the holder itself is missing."""
    return undefined if nullish(holder) else get(holder, key)


def unpack(value: Any, count: int, has_rest: bool = False) -> list[Any]:
    """The items an array pattern takes, padded with undefined; the last one is the list of the rest if wanted."""
    if type(value) is list and not has_rest:
        padding = count - len(value)
        return value[:count] if padding <= 0 else value + [undefined] * padding
    items: Iterator[Any] = iter(iterate(value))
    single = count - has_rest
    taken = list(islice(items, single))
    taken += [undefined] * (single - len(taken))
    if has_rest:
        return [*taken, list(items)]
    end_walk(items)
    return taken


def open_object(value: Any) -> Any:
    """The value an object pattern takes apart; null and undefined cannot be."""
    if nullish(value):
        raise TypeErrorValue(f"Cannot destructure '{'null' if value is None else value}'")
    return value


def without(value: Any, keys: list[str]) -> dict[str, Any]:
    """The members of an object that a pattern has not named."""
    return {key: item for key, item in spread(value).items() if key not in keys}


_TESTS = {"<": less, "<=": less_equal, ">": greater, ">=": greater_equal}
# By how much the end of a `range` lies behind that of a loop.
_BEHIND_END = {"<": 0, "<=": 1, ">": 0, ">=": -1}


def count(start: Any, test: str, end: Any, step: Any = 1) -> Iterable[Any]:
    """The values of `i` in the turns of `for (let i = start; i test end; i += step)`.

    Args:
        start: a number.
        end: the same before each turn, as is `step`.
    """
    is_whole = type(start) is int is type(end) and type(step) is int and MIN_EXACT < end < MAX_EXACT
    if is_whole and (step > 0 if test in ("<", "<=") else step < 0):
        return range(start, end + _BEHIND_END[test], step)
    return _count(start, test, lambda: end, step)


def count_to_length(start: Any, test: str, holder: Any, step: Any = 1) -> Iterable[Any]:
    """As `count`, to `holder.length` of each turn."""
    if type(holder) is str:
        return count(start, test, len(holder), step)
    if type(holder) is list and type(start) is int and start >= 0 and test == "<" and step == 1:
        items = iter(holder)
        items.__setstate__(start)  # type: ignore[attr-defined]
        return map(itemgetter(0), enumerate(items, start))
    return _count(start, test, partial(get, holder, "length"), step)


def count_to_entry(start: Any, test: str, holder: Any, key: str, step: Any = 1) -> Iterable[Any]:
    """As `count`, to `holder.key`, for a loop that changes no object: an entry of an object is read once."""
    if type(holder) is dict and type(end := holder.get(key)) in (int, float):
        return count(start, test, end, step)
    return _count(start, test, partial(get, holder, key), step)


def _count(value: Any, test: str, read_end: Callable[[], Any], step: Any) -> Iterator[Any]:
    holds = _TESTS[test]
    while holds(value, read_end()):
        yield value
        value = add(value, step)
