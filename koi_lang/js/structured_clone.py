"""The global `structuredClone`: a value to one that shares nothing with it."""

from __future__ import annotations

from copy import copy

from koi_lang.js.calling import describe
from koi_lang.js.conversions import PRIMITIVES
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.regexes import RegExpValue
from koi_lang.js.undefined import Value


def structured_clone(value: Value) -> Value:
    """A deep copy; an object that occurs twice, or inside itself, does so in the copy.

    Raises:
        ErrorValue: functions and host objects cannot be copied.
    """
    return _clone(value, {})


def _clone(value: Value, made: dict[int, Value]) -> Value:
    if isinstance(value, PRIMITIVES):
        return value
    if id(value) in made:
        return made[id(value)]
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
        error = made.setdefault(id(value), copy(value))
        error.__koi_extra__ = _clone(value.__koi_extra__, made)
        return error
    if not isinstance(value, MapValue | SetValue):
        refusal = ErrorValue(f"{describe(value)} could not be cloned.")
        refusal.name = "DataCloneError"
        raise refusal
    twin: MapValue | SetValue = made.setdefault(id(value), type(value)())
    for key, item in value.pairs():
        if isinstance(twin, MapValue):
            twin.set(_clone(key, made), _clone(item, made))
        else:
            twin.add(_clone(key, made))
    return twin
