"""The global `Object`."""

from __future__ import annotations

from collections.abc import Mapping

from koi_lang.js.calling import apply, arity
from koi_lang.js.comparison import same
from koi_lang.js.conversions import PRIMITIVES, property_key, text, truth
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.iteration import iterate
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.own_properties import own_entries, own_keys
from koi_lang.js.properties import get, has_own, put
from koi_lang.js.undefined import Value, nullish, undefined

STATICS = MethodTable()


def _thing(value: Value) -> Value:
    if nullish(value):
        raise TypeErrorValue("Cannot convert undefined or null to object")
    return value


@STATICS.add_as("keys", "getOwnPropertyNames")
def _keys(value: Value) -> list[str]:
    return own_keys(_thing(value))


@STATICS.add_as("values")
def _values(value: Value) -> list[Value]:
    return [item for _, item in own_entries(_thing(value))]


@STATICS.add_as("entries")
def _entries(value: Value) -> list[Value]:
    return [[name, item] for name, item in own_entries(_thing(value))]


@STATICS.add_as("assign")
def _assign(target: Value, *sources: Value) -> Value:
    for source in sources:
        for name, item in [] if nullish(source) else own_entries(source):
            put(_thing(target), name, item)
    return _thing(target)


@STATICS.add_as("fromEntries")
def _from_entries(entries: Value) -> dict[str, Value]:
    return {property_key(get(entry, 0)): get(entry, 1) for entry in iterate(entries)}


@STATICS.add_as("groupBy")
def _group_by(items: Value, callback: Value) -> dict[str, Value]:
    groups: dict[str, Value] = {}
    arity(callback)
    for index, item in enumerate(iterate(items)):
        groups.setdefault(property_key(apply(callback, item, index)), []).append(item)
    return groups


@STATICS.add_as("hasOwn")
def _has_own(value: Value, key: Value) -> bool:
    return has_own(_thing(value), key)


@STATICS.add_as("is")
def _is(a: Value, b: Value) -> bool:
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    return same(a, b) and (a != 0 or isinstance(a, float) == isinstance(b, float))


@STATICS.add_as("create")
def _create(prototype: Value, members: Value = undefined) -> dict[str, Value]:
    """An empty object. Raises TypeErrorValue for a prototype, and for members with attributes: objects have neither."""
    if prototype is not None:
        raise TypeErrorValue("objects have no prototypes; write `{ ...object }` for a copy, or `Object.create(null)`")
    if members is not undefined:
        raise TypeErrorValue("members have no attributes; write `{ name: value }` in place of `Object.create`")
    return {}


@STATICS.add_as("defineProperty")
def _define_property(target: Value, key: Value, description: Value) -> Value:
    if get(description, "get") is not undefined:
        raise TypeErrorValue(f"Cannot define property '{text(key)}' by a getter, only by a value")
    is_there = has_own(target, key)
    for attribute, kind in (("enumerable", "hidden"), ("writable", "read-only")):
        wanted = get(description, attribute)
        if not truth(wanted) and not (is_there and wanted is undefined):
            message = f"Cannot define property '{text(key)}', which would be {kind}: members have no attributes. "
            raise TypeErrorValue(f"{message}Write `object.name = value`, or `enumerable: true, writable: true`")
    put(target, key, get(description, "value"))
    return target


@STATICS.add_as("freeze", "seal", "preventExtensions")
def _freeze(value: Value) -> Value:
    """The value itself: Koi objects cannot be frozen or closed."""
    return value


@STATICS.add_as("isFrozen", "isSealed")
def _is_frozen(value: Value) -> bool:
    return isinstance(value, PRIMITIVES) or (isinstance(value, Mapping) and not isinstance(value, dict))


def _object(value: Value = undefined) -> Value:
    return {} if nullish(value) else value


OBJECT = Constructor("Object", _object, _object, lambda value: not isinstance(value, PRIMITIVES), STATICS)
