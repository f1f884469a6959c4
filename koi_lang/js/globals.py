"""Every global name that Koi code may mention, with its value."""

from __future__ import annotations

from collections.abc import Callable

from koi_lang.js import number_object, timers, uri_coding
from koi_lang.js.arrays import ARRAY
from koi_lang.js.console import CONSOLE
from koi_lang.js.conversions import text
from koi_lang.js.dates import DATE
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
from koi_lang.js.keyed_collections import MAP, SET
from koi_lang.js.lazy_constructors import lazy_constructor
from koi_lang.js.math_object import MATH
from koi_lang.js.method_tables import Constructor, holder, namespace
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.object_object import OBJECT
from koi_lang.js.process import CLOCK, PROCESS, RANDOMNESS
from koi_lang.js.promises import PROMISE
from koi_lang.js.regexes import REGEXP
from koi_lang.js.strings import STRING
from koi_lang.js.structured_clone import structured_clone
from koi_lang.js.undefined import Value, undefined


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
    **uri_coding.GLOBALS,
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
