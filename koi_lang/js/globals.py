"""Every global name that Koi code may mention, with its value."""

from __future__ import annotations

import re
import sys
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING

from koi_lang.js import number_object, timers
from koi_lang.js.arrays import ARRAY
from koi_lang.js.calling import apply, describe
from koi_lang.js.console import CONSOLE
from koi_lang.js.conversions import PRIMITIVES, text
from koi_lang.js.dates import DATE, DateValue
from koi_lang.js.errors import (
    AggregateErrorValue,
    ErrorValue,
    RangeErrorValue,
    ReferenceErrorValue,
    SyntaxErrorValue,
    TypeErrorValue,
    URIErrorValue,
)
from koi_lang.js.fetch import fetch
from koi_lang.js.iteration import iterate
from koi_lang.js.json_text import JSON
from koi_lang.js.keyed_collections import MAP, SET, MapValue, SetValue
from koi_lang.js.math_object import MATH
from koi_lang.js.method_tables import Constructor, MethodTable, holder, namespace
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.object_object import OBJECT
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.process import CLOCK, PROCESS, RANDOMNESS
from koi_lang.js.promises import PROMISE
from koi_lang.js.regexes import REGEXP, RegexMatch, RegExpValue
from koi_lang.js.strings import STRING
from koi_lang.js.undefined import Value, undefined
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.js import dom_exceptions
else:
    dom_exceptions = lazy_module("koi_lang.js.dom_exceptions")

URI_GLOBALS = MethodTable()
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()")
_RESERVED = frozenset(";/?:@&=+$,#")
_ESCAPED = re.compile("(?:%[0-9A-Fa-f]{2})+")


def _encode(source: str, kept: frozenset[str]) -> str:
    try:
        return "".join(c if c in kept else "".join(f"%{byte:02X}" for byte in c.encode()) for c in source)
    except UnicodeEncodeError as error:
        raise URIErrorValue("URI malformed") from error


def _decode(source: str, kept: frozenset[str]) -> str:
    """Undo escapes, except those of the characters to keep."""
    if "%" in _ESCAPED.sub("", source):
        raise URIErrorValue("URI malformed")
    return _ESCAPED.sub(lambda found: _characters(found[0], kept), source)


def _characters(escapes: str, kept: frozenset[str]) -> str:
    try:
        decoded = bytes.fromhex(escapes.replace("%", "")).decode()
    except UnicodeDecodeError as error:
        raise URIErrorValue("URI malformed") from error
    # Those to keep are of one byte, and stay as they were written.
    ends = accumulate(3 * len(c.encode()) for c in decoded)
    return "".join(escapes[end - 3 : end] if c in kept else c for c, end in zip(decoded, ends, strict=True))


@URI_GLOBALS.add_as("encodeURIComponent")
def _encode_component(value: Value = undefined) -> str:
    return _encode(text(value), _PLAIN)


@URI_GLOBALS.add_as("encodeURI")
def _encode_uri(value: Value = undefined) -> str:
    return _encode(text(value), _PLAIN | _RESERVED)


@URI_GLOBALS.add_as("decodeURIComponent")
def _decode_component(value: Value = undefined) -> str:
    return _decode(text(value), frozenset())


@URI_GLOBALS.add_as("decodeURI")
def _decode_uri(value: Value = undefined) -> str:
    return _decode(text(value), _RESERVED)


@URI_GLOBALS.add_as("btoa")
def _btoa(value: Value) -> str:
    try:
        return b2a_base64(text(value).encode("latin-1"), newline=False).decode()
    except UnicodeEncodeError as error:
        raise ErrorValue("Invalid character") from error


@URI_GLOBALS.add_as("atob")
def _atob(value: Value) -> str:
    source = re.sub(r"[\t\n\f\r ]", "", text(value)).rstrip("=")
    try:
        return a2b_base64(source + "=" * (-len(source) % 4), strict_mode=True).decode("latin-1")
    except (Error, ValueError) as error:
        raise ErrorValue("The string to be decoded is not correctly encoded.") from error


class _LazyStatics(Mapping[str, Value]):
    """The members of a constructor, which is loaded with the first one that is asked for."""

    def __init__(self, load: Callable[[], Constructor]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> Value:
        return self._load().statics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load().statics)

    def __len__(self) -> int:
        return len(self._load().statics)


def lazy_constructor(name: str, module: str, *, is_function: bool = False) -> Constructor:
    """A constructor that stands for the one of a module, which is loaded when something of it is used first.

    Args:
        name: of the global; the module has the constructor under it in capital letters.
        module: its whole name.
        is_function: whether it may be called without `new`.
    """

    def load() -> Constructor:
        constructor: Constructor = getattr(import_module(module), name.upper())
        return constructor

    def holds(value: Value) -> bool:
        return module in sys.modules and load().holds(value)

    def build(*args: Value) -> Value:
        return apply(load().build, *args)

    return Constructor(name, build, build if is_function else None, holds, _LazyStatics(load))


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


def _error_arguments(message: Value, options: Value) -> tuple[Value, Value]:
    """The message and the cause that the arguments of an error's constructor give."""
    cause = options.get("cause", undefined) if isinstance(options, dict) else undefined
    return "" if message is undefined else text(message), cause


def _error(kind: type[ErrorValue]) -> Constructor:
    """The constructor of a kind of error; with `new` or without is the same."""

    def build(message: Value = undefined, options: Value = undefined) -> ErrorValue:
        return kind(*_error_arguments(message, options))

    return Constructor(kind.kind, build, build, holder(kind))


def _aggregate() -> Constructor:
    def build(errors: Value, message: Value = undefined, options: Value = undefined) -> ErrorValue:
        return AggregateErrorValue(list(iterate(errors)), *_error_arguments(message, options))

    return Constructor("AggregateError", build, build, holder(AggregateErrorValue))


def _set_name(name: str, function: Callable[..., Value]) -> Callable[..., Value]:
    function.__dict__["__koi_name__"] = name
    return function


# What is loaded when a program first uses it.
_RARE = {
    "AbortController": "abort_signals", "AbortSignal": "abort_signals", "DOMException": "dom_exceptions",
    "TextDecoder": "text_coding", "TextEncoder": "text_coding", "Uint8Array": "byte_arrays", "URL": "urls",
    "URLSearchParams": "search_params",
}  # fmt: skip
_CONSTRUCTORS = (
    OBJECT, ARRAY, STRING, number_object.NUMBER, number_object.BOOLEAN, DATE, REGEXP, MAP, SET, PROMISE, _aggregate(),
    *(lazy_constructor(name, f"koi_lang.js.{module}") for name, module in _RARE.items()),
    *map(_error, (ErrorValue, TypeErrorValue, RangeErrorValue, SyntaxErrorValue, ReferenceErrorValue, URIErrorValue)),
)  # fmt: skip

_INTL = namespace(
    {
        name: lazy_constructor(name, "koi_lang.js.intl_objects", is_function=True)
        for name in ("DateTimeFormat", "NumberFormat")
    }
)

GLOBALS: dict[str, object] = {
    **{constructor.name: constructor for constructor in _CONSTRUCTORS},
    **number_object.GLOBALS,
    **timers.TIMERS,
    **URI_GLOBALS,
    "console": CONSOLE,
    "crypto": RANDOMNESS,
    "fetch": fetch,
    "Infinity": INFINITY,
    "Intl": _INTL,
    "JSON": JSON,
    "Math": MATH,
    "NaN": NAN,
    "performance": CLOCK,
    "process": PROCESS,
    "structuredClone": _set_name("structuredClone", structured_clone),
    "undefined": undefined,
}
