"""A text with `%s`, `%d`… and values to a text with them filled in."""

from __future__ import annotations

import re
from collections.abc import Callable

from koi_lang.js.conversions import PRIMITIVES, is_number, number, text
from koi_lang.js.inspect_primitives import number_leaf
from koi_lang.js.json_text import stringify
from koi_lang.js.number_format import NAN, parse_float, parse_int
from koi_lang.js.undefined import Value, undefined

_MARK = re.compile("%([sdifjoOc%])")


def fill(form: str, values: list[Value], inspect: Callable[..., str]) -> tuple[str, list[Value]]:
    """The filled text, and the values that no placeholder took; one without a value stays as it is."""
    waiting = list(values)

    def replacement(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        return _format_value(found[1], waiting.pop(0), inspect) if waiting else found[0]

    return _MARK.sub(replacement, form), waiting


def _format_value(kind: str, value: Value, inspect: Callable[..., str]) -> str:
    if kind == "s":
        return _as_text(value, inspect)
    if kind == "d":
        return number_leaf(number(value) if isinstance(value, PRIMITIVES) else NAN)
    if kind == "i":
        return number_leaf(parse_int(text(value)) if isinstance(value, PRIMITIVES) else NAN)
    if kind == "f":
        return number_leaf(parse_float(text(value)))
    if kind == "j":
        written = stringify(value)
        return "undefined" if written is undefined else str(written)
    if kind == "c":
        return ""
    return inspect(value, depth=4, hidden=True) if kind == "o" else inspect(value)


def _as_text(value: Value, inspect: Callable[..., str]) -> str:
    if is_number(value):
        return number_leaf(value)
    own = isinstance(value, dict) and callable(value.get("toString"))
    return text(value) if isinstance(value, PRIMITIVES) or own else inspect(value, depth=0)
