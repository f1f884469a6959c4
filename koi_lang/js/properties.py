"""A value and the name of a member to what is there: reading, writing and removing members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType, NoneType
from typing import TypeAlias

from koi_lang.js import arrays, number_object, strings
from koi_lang.js.calling import apply_to, arity, describe, function_name
from koi_lang.js.conversions import PRIMITIVES, position, property_key, text
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.own_properties import own_keys
from koi_lang.js.python_interop import from_module, from_object
from koi_lang.js.undefined import Undefined, Value, nullish, undefined

Reader: TypeAlias = Callable[[Value, str], Value]
OBJECTS = MethodTable()
FUNCTIONS = MethodTable()
_MISSING = object()
_MAX_JUMP = 10_000_000


def get(value: Value, key: Value) -> Value:
    """`value.key` or `value[key]`; undefined when there is no such member.

    Raises:
        TypeErrorValue: the value is null or undefined.
    """
    kind = type(value)
    if kind is list and type(key) is int:
        return value[key] if 0 <= key < len(value) else undefined
    if type(key) is str:
        if kind is dict or kind is MappingProxyType:
            if key in value:
                return value[key]
            if kind is dict:
                return _method(OBJECTS, value, key)
        elif key == "length" and (kind is list or kind is str):
            return len(value)
    elif type(key) is int and kind is str:
        return value[key] if 0 <= key < len(value) else undefined
    else:
        return get(value, property_key(key))
    return _reader(kind)(value, key)  # type: ignore[arg-type]


@lru_cache(maxsize=512)
def _reader(kind: type) -> Reader:
    """How members of a Python class are read."""
    if "__koi_members__" in dir(kind):
        return _of_array if issubclass(kind, list) or hasattr(kind, "__koi_absent__") else _of_members
    for bases, reader in _READERS:
        if issubclass(kind, bases):
            return reader
    return _of_object


def _method(table: MethodTable, value: Value, key: str) -> Value:
    method = table.get(key)
    return undefined if method is None else MethodType(method, value)


def _of_nothing(value: Value, key: str) -> Value:
    raise TypeErrorValue(f"Cannot read properties of {value if value is undefined else 'null'} (reading '{key}')")


def _of_record(record: Mapping[str, Value], key: str) -> Value:
    """An entry, a method of objects, or what a class of Python such as `Counter` has beside them."""
    if key in record:
        return record[key]
    if key in OBJECTS or type(record).__module__.startswith("koi_lang."):
        return _method(OBJECTS, record, key)
    return _of_object(record, key)


def _of_array(items: Value, key: str) -> Value:
    if key == "length":
        return len(items)
    index = position(key)
    if index is not None:
        return items[index] if index < len(items) else undefined
    members: dict[str, str] = getattr(type(items), "__koi_members__", {})
    if key in members:
        return getattr(items, members[key])
    if key in getattr(type(items), "__koi_absent__", ()):
        return undefined
    return _method(arrays.METHODS, items if isinstance(items, list) else list(items), key)


def _of_text(value: str, key: str) -> Value:
    if key == "length":
        return len(value)
    index = position(key)
    if index is not None:
        return value[index] if index < len(value) else undefined
    return _method(strings.METHODS, value, key)


def _of_flag(value: bool, key: str) -> Value:
    return _method(number_object.FLAGS, value, key)


def _of_number(value: float, key: str) -> Value:
    return _method(number_object.METHODS, value, key)


def _of_function(value: Value, key: str) -> Value:
    if key == "name":
        return function_name(value)
    if key == "length":
        return arity(value).least
    if key in FUNCTIONS:
        return _method(FUNCTIONS, value, key)
    return _of_object(value, key)


def _of_constructor(value: Constructor, key: str) -> Value:
    if key in value.statics:
        return value.statics[key]
    return value.name if key == "name" else _method(FUNCTIONS, value, key)


def _of_members(value: Value, key: str) -> Value:
    name = type(value).__koi_members__.get(key)
    if name is not None:
        return getattr(value, name)
    for more in ("__koi_extra__", "__koi_functions__"):
        found: Mapping[str, Value] = getattr(value, more, {})
        if key in found:
            return found[key]
    return _method(OBJECTS, value, key) if key in _COMMON else undefined


def _of_object(value: Value, key: str) -> Value:
    if key.startswith("_"):
        return undefined
    found = getattr(value, key, _MISSING)
    if found is _MISSING:
        return _method(OBJECTS, value, key) if key in _COMMON else undefined
    return from_module(found, value, key) if type(value) is ModuleType else from_object(found, value, key)


_COMMON = ("toString", "hasOwnProperty")


def names_of(value: Value) -> list[str]:
    """The names that a value has members under, for advice about one that it does not have."""
    if isinstance(value, Constructor):
        return list(value.statics)
    if isinstance(value, Mapping):
        return [str(name) for name in value]
    members: dict[str, str] = getattr(type(value), "__koi_members__", {})
    for bases, table in _TABLES:
        if isinstance(value, bases):
            return [*members, *table]
    functions: Mapping[str, Value] = getattr(value, "__koi_functions__", {})
    return [*members, *functions] or [name for name in dir(value) if not name.startswith("_")]


_TABLES: tuple[tuple[type | tuple[type, ...], MethodTable], ...] = (
    (str, strings.METHODS),
    ((list, tuple), arrays.METHODS),
    (bool, number_object.FLAGS),
    ((int, float), number_object.METHODS),
    ((FunctionType, MethodType, BuiltinFunctionType), FUNCTIONS),
)
_READERS: tuple[tuple[type | tuple[type, ...], Reader], ...] = (
    ((NoneType, Undefined), _of_nothing),
    (Constructor, _of_constructor),
    (str, _of_text),
    ((list, tuple), _of_array),
    (bool, _of_flag),
    ((int, float), _of_number),
    (Mapping, _of_record),
    ((FunctionType, MethodType, BuiltinFunctionType), _of_function),
)


def put(value: Value, key: Value, new: Value) -> Value:
    """`value[key] = new`; arrays grow, the new places in between are undefined. Returns `new`.

    Raises:
        TypeErrorValue: the value has no member that can be set.
    """
    kind = type(value)
    if kind is list and type(key) is int and 0 <= key < len(value):
        value[key] = new
    elif kind is dict:
        value[key if type(key) is str else property_key(key)] = new
    elif isinstance(value, list):
        _put_item(value, key, new)
    elif isinstance(value, dict):
        value[property_key(key)] = new
    elif hasattr(type(value), "put_item") and (index := position(key)) is not None:
        value.put_item(index, new)
    else:
        _put_member(value, property_key(key), new)
    return new


def _put_item(items: list[Value], key: Value, new: Value) -> None:
    index = key if type(key) is int and key >= 0 else position(key)
    if index is None:
        _put_named(items, property_key(key), new)
    elif index < len(items):
        items[index] = new
    else:
        _resize(items, index)
        items.append(new)


def _put_named(items: list[Value], name: str, new: Value) -> None:
    if name != "length":
        raise TypeErrorValue(f"Cannot set property '{name}' of an array, it holds numbered items only")
    length = position(new)
    if length is None:
        raise RangeErrorValue("Invalid array length")
    _resize(items, length)


def _resize(items: list[Value], length: int) -> None:
    """Cut or fill an array up; a length far beyond the items there are is refused, it would fill the memory."""
    if length - len(items) > _MAX_JUMP:
        raise RangeErrorValue("Invalid array length")
    del items[length:]
    items.extend([undefined] * (length - len(items)))


def _put_member(value: Value, name: str, new: Value) -> None:
    if nullish(value):
        raise TypeErrorValue(f"Cannot set properties of {text(value)} (setting '{name}')")
    if isinstance(value, (*PRIMITIVES, Mapping)):
        raise TypeErrorValue(f"Cannot set property '{name}' of {describe(value)}")
    members: dict[str, str] | None = getattr(type(value), "__koi_members__", None)
    extra: dict[str, Value] | None = getattr(value, "__koi_extra__", None)
    if members is not None and name not in members and extra is not None:
        extra[name] = new
        return
    attribute = name if members is None else members.get(name, "")
    if not attribute or (members is None and name.startswith("_")):
        raise TypeErrorValue(f"Cannot set property '{name}' of {describe(value)}")
    try:
        setattr(value, attribute, new)
    except (AttributeError, TypeError) as error:
        raise TypeErrorValue(f"Cannot set property '{name}' of {describe(value)}") from error


def remove(value: Value, key: Value) -> bool:
    """`delete value[key]`; an item of an array becomes undefined.

    Raises:
        TypeErrorValue: the value is null or undefined, or its members cannot be removed.
    """
    name = property_key(key)
    if nullish(value):
        raise TypeErrorValue(f"Cannot convert {text(value)} to object")
    if isinstance(value, dict):
        value.pop(name, None)
        return True
    if isinstance(value, list):
        index = position(name)
        if index is not None and index < len(value):
            value[index] = undefined
        return name != "length"
    extra: dict[str, Value] | None = getattr(value, "__koi_extra__", None)
    if extra is None and has(name, value):
        raise TypeErrorValue(f"Cannot delete property '{name}' of {describe(value)}")
    (extra or {}).pop(name, None)
    return True


def has(key: Value, value: Value) -> bool:
    """`key in value`.

    Raises:
        TypeErrorValue: the value has no members of its own kind (a text, a number, null).
    """
    name = property_key(key)
    if isinstance(value, PRIMITIVES):
        raise TypeErrorValue(f"Cannot use 'in' operator to search for '{name}' in {text(value)}")
    return has_own(value, name) or get(value, name) is not undefined


@OBJECTS.add_as("hasOwnProperty", "propertyIsEnumerable")
def has_own(value: Value, key: Value) -> bool:
    """Whether a value itself has a member."""
    name = property_key(key)
    if isinstance(value, Mapping):
        return name in value
    return name in own_keys(value) or (name == "length" and isinstance(value, list | tuple | str))


@OBJECTS.add_as("toString", "toLocaleString")
def _object_text(value: Value) -> str:
    return text(value)


@OBJECTS.add_as("valueOf")
def _object_value(value: Value) -> Value:
    return value


@FUNCTIONS.add_as("call")
def _call(f: Value, this: Value = undefined, *args: Value) -> Value:
    return apply_to(this, f, *args)


@FUNCTIONS.add_as("apply")
def _apply(f: Value, this: Value = undefined, args: Value = None) -> Value:
    return apply_to(this, f, *([] if nullish(args) else args))


@FUNCTIONS.add_as("bind")
def _bind(f: Value, this: Value = undefined, *args: Value) -> Value:
    def bound(*more: Value) -> Value:
        return apply_to(this, f, *args, *more)

    bound.__dict__["__koi_name__"] = f"bound {function_name(f)}"
    return bound


@FUNCTIONS.add_as("toString")
def _function_text(f: Value) -> str:
    return text(f)
