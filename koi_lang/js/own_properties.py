"""Objects to their own members, in JavaScript's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from koi_lang.js.conversions import PRIMITIVES, position
from koi_lang.js.undefined import Value

_DIGITS = frozenset("0123456789")


def is_record(value: Value) -> TypeGuard[Mapping[str, Value]]:
    """Whether a value is a plain object: a dict or any other Python mapping."""
    return isinstance(value, dict | Mapping)


def is_array(value: Value) -> TypeGuard[list[Value] | tuple[Value, ...]]:
    """Whether a value is an array; tuples of Python modules are read as such."""
    return isinstance(value, list | tuple)


def sort_names(names: Iterable[str]) -> list[str]:
    """Names as JavaScript lists them: numbers ascending, then the others as they were added."""
    listed = [name if type(name) is str else str(name) for name in names]
    if not any(name[:1] in _DIGITS for name in listed if name):
        return listed
    numbered = sorted((name for name in listed if position(name) is not None), key=int)
    return numbered + [name for name in listed if position(name) is None]


def own_keys(value: Value) -> list[str]:
    """The names of the members a value itself has and shows; none for null and undefined."""
    if is_record(value):
        return sort_names(value)
    if is_array(value) or isinstance(value, str) or hasattr(type(value), "put_item"):
        return [str(index) for index in range(len(value))]
    return sort_names(fields(value))


def own_entries(value: Value) -> list[tuple[str, Value]]:
    """The members a value itself has, with their values."""
    if is_record(value):
        record = value if all(type(key) is str for key in value) else {str(key): value[key] for key in value}
        return [(name, record[name]) for name in sort_names(record)]
    if is_array(value) or isinstance(value, str) or hasattr(type(value), "put_item"):
        return [(str(index), item) for index, item in enumerate(value)]
    return [(name, item) for name, item in fields(value).items()]


def fields(value: Value) -> dict[str, Value]:
    """The members of a host object: what Koi code stored in it, or the public fields of a Python object."""
    extra = getattr(value, "__koi_extra__", None)
    if extra is not None:
        return dict(extra)
    if isinstance(value, (*PRIMITIVES, type)) or callable(value) or hasattr(type(value), "__koi_members__"):
        return {}
    names = getattr(type(value), "__dataclass_fields__", None) or getattr(value, "__dict__", {})
    return {name: getattr(value, name) for name in names if not name.startswith("_")}
