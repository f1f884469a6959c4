"""Members and calls as compiled code asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from types import CoroutineType, FunctionType, MappingProxyType, MethodType

from koi_lang.diagnostics import nearest
from koi_lang.js import arrays, strings
from koi_lang.js.calling import VARIADIC, apply, apply_to, describe
from koi_lang.js.conversions import property_key
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.iteration import iterate
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.own_properties import is_array, is_record, own_entries, own_keys
from koi_lang.js.promises import spawn
from koi_lang.js.properties import get, has, names_of, put, remove
from koi_lang.js.undefined import Value, nullish, undefined

__all__ = [
    "apply", "apply_member", "apply_to", "call", "get", "has", "invoke", "invoke_found", "iterate", "keys", "new",
    "put", "remove", "spread",
]  # fmt: skip
COLLECTIONS = (MapValue, SetValue)
_METHODS: dict[type, MethodTable] = {str: strings.METHODS, list: arrays.METHODS}


def call(f: Value, *args: Value) -> Value:
    """`f(…)`: a coroutine is started and its promise returned."""
    if type(f) is FunctionType and (code := f.__code__).co_argcount == len(args) and not code.co_flags & VARIADIC:
        result = f(args[0]) if len(args) == 1 else _call_fitting(f, args) if args else f()
    else:
        result = apply(f, *args)
    return spawn(result) if type(result) is CoroutineType else result


def _takes(f: Value, count: int) -> bool:
    """Whether a function of Koi takes exactly so many arguments."""
    return type(f) is FunctionType and (code := f.__code__).co_argcount == count and not code.co_flags & VARIADIC


def _call_fitting(f: Value, args: tuple[Value, ...]) -> Value:
    """Call a function with the arguments it takes; Python is much quicker where their number is known."""
    if len(args) == 1:
        return f(args[0])
    if len(args) == 2:
        return f(args[0], args[1])
    return f(*args) if args else f()


def apply_member(value: Value, key: Value, *args: Value) -> Value:
    """`value.key(…)`, a coroutine is returned as it is.

    Raises:
        TypeErrorValue: there is no such member, or it is not a function.
    """
    methods = _METHODS.get(type(value))
    if methods is not None and type(key) is str and (method := methods.get(key)) is not None:
        return apply(method, value, *args)
    f = get(value, key)
    if not callable(f):
        raise TypeErrorValue(_no_function(value, property_key(key), f))
    return apply_to(value, f, *args)


def invoke_found(value: Value, f: Value, *args: Value) -> Value:
    """Call `f`, which was read from `value`, as its member: a coroutine is started and its promise returned."""
    result = apply_to(value, f, *args)
    return spawn(result) if type(result) is CoroutineType else result


def _no_function(value: Value, name: str, found: Value) -> str:
    message = f"`{name}` of {describe(value)} is not a function"
    near = nearest(name, names_of(value)) if found is undefined else None
    return f"{message}; did you mean `{near}`?" if near else message


def invoke(value: Value, key: Value, *args: Value) -> Value:
    """`value.key(…)`: a coroutine is started and its promise returned."""
    method = _fitting_method(value, key, len(args))
    result = apply_member(value, key, *args) if method is None else _call_fitting(method, args)
    return spawn(result) if type(result) is CoroutineType else result


def _fitting_method(value: Value, key: Value, count: int) -> Value:
    """What `value.key(…)` calls if reading it has no effect and it takes so many arguments, else None."""
    kind = type(value)
    methods = _METHODS.get(kind)
    if type(key) is not str:
        return None
    if methods is not None:
        least, most = methods.arities.get(key, (1, 0))
        return MethodType(methods[key], value) if least <= count <= most else None
    if kind is dict or kind is MappingProxyType:
        f = value.get(key)
        return f if _takes(f, count) else None
    if kind in COLLECTIONS and (name := kind.__koi_members__.get(key)) is not None:
        f = getattr(value, name)
        return f if type(f) is MethodType and _takes(f.__func__, count + 1) else None
    return None


def new(kind: Value, *args: Value) -> Value:
    """`new kind(…)`, for the globals of the language and for Python classes.

    Raises:
        TypeErrorValue: nothing can be made of it.
    """
    if isinstance(kind, Constructor):
        return apply(kind.build, *args)
    if isinstance(kind, type):
        return apply(kind, *args)
    raise TypeErrorValue(f"{describe(kind)} is not a constructor")


def keys(value: Value) -> Iterator[str]:
    """The names that `for … in` visits: those that there are at first, without the ones deleted before their turn."""
    for name in own_keys(value):
        if is_array(value):
            is_gone = int(name) >= len(value)
        else:  # keys of Python may be numbers, of which the names are texts
            is_gone = is_record(value) and name not in value and all(type(key) is str for key in value)
        if not is_gone:
            yield name


def spread(value: Value) -> dict[str, Value]:
    """The members that `{ ...value }` takes over; nothing for null, undefined and numbers."""
    if type(value) is dict:
        return value.copy()
    return {} if nullish(value) else dict(own_entries(value))
