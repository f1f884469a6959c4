"""Every global name that Koi code may mention, with its value."""

from __future__ import annotations

from collections.abc import Callable

from koi_lang.runtime.values import figures, timers, uris
from koi_lang.runtime.values.arrays import ARRAY
from koi_lang.runtime.values.clones import structured_clone
from koi_lang.runtime.values.collections import MAP, SET
from koi_lang.runtime.values.console import CONSOLE
from koi_lang.runtime.values.conversions import text
from koi_lang.runtime.values.dates import DATE
from koi_lang.runtime.values.failures import (
    AggregateErrorValue,
    ErrorValue,
    RangeErrorValue,
    ReferenceErrorValue,
    SyntaxErrorValue,
    TypeErrorValue,
    URIErrorValue,
)
from koi_lang.runtime.values.iteration import iterate
from koi_lang.runtime.values.json_text import JSON
from koi_lang.runtime.values.maths import MATH
from koi_lang.runtime.values.net import fetch
from koi_lang.runtime.values.numbers import INFINITY, NAN
from koi_lang.runtime.values.objects import OBJECT
from koi_lang.runtime.values.process import CLOCK, PROCESS, RANDOMNESS
from koi_lang.runtime.values.promises import PROMISE
from koi_lang.runtime.values.regexes import REGEXP
from koi_lang.runtime.values.strings import STRING
from koi_lang.runtime.values.tables import Constructor, holder
from koi_lang.runtime.values.undefined import Value, undefined


def _said(message: Value, options: Value) -> tuple[Value, Value]:
    """The message and the cause that the arguments of an error's constructor give."""
    cause = options.get("cause", undefined) if isinstance(options, dict) else undefined
    return "" if message is undefined else text(message), cause


def _error(kind: type[ErrorValue]) -> Constructor:
    """The constructor of a kind of error; with `new` or without is the same."""

    def build(message: Value = undefined, options: Value = undefined) -> ErrorValue:
        return kind(*_said(message, options))

    return Constructor(kind.kind, build, build, holder(kind))


def _aggregate() -> Constructor:
    def build(errors: Value, message: Value = undefined, options: Value = undefined) -> ErrorValue:
        return AggregateErrorValue(list(iterate(errors)), *_said(message, options))

    return Constructor("AggregateError", build, build, holder(AggregateErrorValue))


def _named(name: str, function: Callable[..., Value]) -> Callable[..., Value]:
    function.__dict__["__koi_name__"] = name
    return function


_CONSTRUCTORS = (
    OBJECT, ARRAY, STRING, figures.NUMBER, figures.BOOLEAN, DATE, REGEXP, MAP, SET, PROMISE, _aggregate(),
    *map(_error, (ErrorValue, TypeErrorValue, RangeErrorValue, SyntaxErrorValue, ReferenceErrorValue, URIErrorValue)),
)  # fmt: skip

GLOBALS: dict[str, object] = {
    **{constructor.name: constructor for constructor in _CONSTRUCTORS},
    **figures.GLOBALS,
    **timers.TIMERS,
    **uris.GLOBALS,
    "console": CONSOLE,
    "crypto": RANDOMNESS,
    "fetch": fetch,
    "Infinity": INFINITY,
    "JSON": JSON,
    "Math": MATH,
    "NaN": NAN,
    "performance": CLOCK,
    "process": PROCESS,
    "structuredClone": _named("structuredClone", structured_clone),
    "undefined": undefined,
}
