"""The global `structuredClone`: a value to one that shares nothing with it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from koi_lang.js.calling import describe
from koi_lang.js.conversions import PRIMITIVES
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.regexes import RegexMatch, RegExpValue
from koi_lang.js.undefined import Value
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.js import dom_exceptions
else:
    dom_exceptions = lazy_module("koi_lang.js.dom_exceptions")


def structured_clone(value: Value) -> Value:
    """A deep copy; an object that occurs twice, or inside itself, does so in the copy.

    Raises:
        DomError: functions and host objects cannot be copied.
    """
    return _clone(value, {})


def _clone(value: Value, made: dict[int, Value]) -> Value:
    if isinstance(value, PRIMITIVES):
        return value
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, RegexMatch):
        twin = made.setdefault(id(value), copy(value))
        twin.groups = _clone(value.groups, made)
        return twin
    if is_array(value):
        items: list[Value] = made.setdefault(id(value), [])
        items.extend(_clone(item, made) for item in value)
        return items
    if is_record(value):
        record: dict[str, Value] = made.setdefault(id(value), {})
        record.update((name, _clone(item, made)) for name, item in own_entries(value))
        return record
    return _clone_object(value, made)


def _clone_object(value: Value, made: dict[int, Value]) -> Value:
    if isinstance(value, DateValue):
        return DateValue(value.ms)
    if isinstance(value, RegExpValue):
        return RegExpValue(value.source, value.flags)
    if isinstance(value, ErrorValue):
        return _clone_error(value, made)
    if hasattr(type(value), "put_item"):
        return made.setdefault(id(value), value.slice())
    if not isinstance(value, MapValue | SetValue):
        raise dom_exceptions.data_clone_error(describe(value))
    twin: MapValue | SetValue = made.setdefault(id(value), type(value)())
    for key, item in value.pairs():
        if isinstance(twin, MapValue):
            twin.set(_clone(key, made), _clone(item, made))
        else:
            twin.add(_clone(key, made))
    return twin


def _clone_error(error: ErrorValue, made: dict[int, Value]) -> ErrorValue:
    """An error with its message and cause; other members are left behind, and a name of its own is."""
    twin: ErrorValue = made.setdefault(id(error), copy(error))
    twin.__koi_extra__ = {}
    twin.cause = _clone(error.cause, made)
    if not isinstance(error, dom_exceptions.DomError):
        twin.name = error.kind if error.name == error.kind else "Error"
    return twin
