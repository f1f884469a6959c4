"""Values to the items that `for … of` and spread see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CO_COROUTINE
from itertools import islice
from types import CoroutineType, FunctionType
from typing import ClassVar

from koi_lang.js.calling import arity, describe
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.undefined import Value, undefined
from koi_lang.source import is_program


def iterate(value: Value) -> Iterable[Value]:
    """The items of a text, array, Map, Set or any Python iterable.

    Raises:
        TypeErrorValue: the value has no items.
    """
    if type(value) is list:
        return value
    if isinstance(value, Mapping) or not hasattr(type(value), "__iter__"):
        raise TypeErrorValue(f"{describe(value)} is not iterable")
    return value  # type: ignore[no-any-return]


class IteratorValue:
    """An iterator with the member `next`, as `map.keys()` gives it; `title` is how it prints."""

    __slots__ = ("_items", "title")
    __koi_members__: ClassVar[dict[str, str]] = {"next": "next", "toString": "__str__"}

    def __init__(self, title: str, items: Iterable[Value]) -> None:
        self.title = title
        self._items = iter(items)

    def __iter__(self) -> Iterator[Value]:
        return self._items

    def __str__(self) -> str:
        return f"[object {self.title}]"

    def peek(self) -> list[Value]:
        """The items still to come, which stay to come."""
        items = list(self._items)
        self._items = iter(items)
        return items

    def next(self) -> dict[str, Value]:
        """The next step as `{ value, done }`."""
        for value in self._items:
            return {"value": value, "done": False}
        return {"value": undefined, "done": True}


def outcomes(f: Value, items: list[Value], started: Callable[[Value], Value]) -> Iterator[Value]:
    """What `f(item, index, array)` gives for each item, one by one, for as many items as there are now.

    Args:
        f: a callback; it gets as many of the three arguments as it accepts.
        items: the array, which the callback may change.
        started: what turns the coroutine of an async callback into a promise.
    """
    f = getattr(f, "__koi_code__", f)
    least, most = arity(f)
    code = f.__code__ if type(f) is FunctionType else None
    if most == 1 and code is not None and is_program(code.co_filename) and not code.co_flags & CO_COROUTINE:
        return map(f, islice(items, len(items)))  # every call that such a function makes starts its coroutine

    def steps() -> Iterator[Value]:
        for index, item in enumerate(islice(items, len(items))):
            given = (item, index, items)[:most]
            result = f(*given) if least <= 3 else f(*given, *(undefined,) * (least - 3))
            yield started(result) if type(result) is CoroutineType else result

    return steps()
