"""The global `JSON`: values to JSON text and back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from json.encoder import encode_basestring

from koi_lang.js.calling import apply, apply_to
from koi_lang.js.conversions import integer, text
from koi_lang.js.errors import SyntaxErrorValue, TypeErrorValue
from koi_lang.js.method_tables import MethodTable, namespace
from koi_lang.js.number_format import to_compact
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.properties import get
from koi_lang.js.undefined import Value, undefined

METHODS = MethodTable()
_BLANKS = (" ", "\t", "\r", "\n")
_WORDS = ("true", "false", "null")
# Of whole numbers that are more exact than a double, which has no more digits either.
MAX_BITS, MAX_DIGITS = 1024, 309
_HALF = re.compile("[\ud800-\udfff]")


@METHODS.add_as("stringify")
def stringify(value: Value, replacer: Value = undefined, indent: Value = undefined) -> Value:
    """A value to JSON, undefined when there is nothing to write.

    Args:
        value: anything.
        replacer: a function of (key, value), or an array with the names of the members to write.
        indent: how many spaces, or the text, to indent by.

    Raises:
        TypeErrorValue: the value contains itself.
    """
    step = _step(indent)
    written = _JsonWriter(replacer, step).write("", value, "\n" if step else "")
    return undefined if written is None else written


def stringify_exactly(value: Value, replacer: Value = undefined) -> Value:
    """As `stringify`, with all digits of whole numbers: what is told to models, stored and sent is no double.

    Raises:
        TypeErrorValue: the value contains itself.
    """
    written = _JsonWriter(replacer, "", is_exact=True).write("", value, "")
    return undefined if written is None else written


def _step(indent: Value) -> str:
    if isinstance(indent, str):
        return indent[:10]
    return " " * max(0, min(integer(indent), 10)) if isinstance(indent, int | float) else ""


class _JsonWriter:
    """One `stringify`: `open` are the objects being written, to notice one inside itself."""

    def __init__(self, replacer: Value, step: str, *, is_exact: bool = False) -> None:
        self.is_exact = is_exact
        self.replace = replacer if callable(replacer) else None
        self.names = list(dict.fromkeys(map(text, replacer))) if is_array(replacer) else None
        self.step = step
        self.open: set[int] = set()

    def write(self, key: str, value: Value, line: str) -> str | None:
        """A value as JSON, None when it is left out; `line` is what a new line begins with."""
        if isinstance(value, str):
            if self.replace is None:
                return quote(value)
        elif value is not None and value is not undefined and not isinstance(value, bool | int | float):
            convert = get(value, "toJSON")
            value = apply_to(value, convert, key) if callable(convert) else value
        if self.replace is not None:
            value = apply(self.replace, key, value)
        simple = str(value) if self.is_exact and is_whole(value) else _simple(value)
        return self._write_nested(value, line) if simple is None and not _is_skipped(value) else simple

    def _write_nested(self, value: Value, line: str) -> str:
        if id(value) in self.open:
            raise TypeErrorValue("Converting circular structure to JSON")
        self.open.add(id(value))
        inner = line + self.step
        written = self._array(value, inner) if is_array(value) else self._object(value, inner)
        self.open.discard(id(value))
        left, right = "[]" if is_array(value) else "{}"
        if not written or not self.step:
            return left + ",".join(written) + right
        return f"{left}{inner}{f',{inner}'.join(written)}{line}{right}"

    def _array(self, items: Value, line: str) -> list[str]:
        return [self.write(str(index), item, line) or "null" for index, item in enumerate(items)]

    def _object(self, value: Value, line: str) -> list[str]:
        entries = own_entries(value)
        if self.names is not None:
            known = dict(entries)
            entries = [(name, known[name]) for name in self.names if name in known]
        colon = ": " if self.step else ":"
        written = [(name, self.write(name, item, line)) for name, item in entries]
        return [f"{quote(name)}{colon}{item}" for name, item in written if item is not None]


def _simple(value: Value) -> str | None:
    """The JSON of a value without members."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return text(value) if isinstance(value, int) or math.isfinite(value) else "null"
    return None


def _is_skipped(value: Value) -> bool:
    return value is undefined or callable(value)


def quote(value: str) -> str:
    """A text as a JSON string."""
    quoted = encode_basestring(value)
    return quoted if quoted.isascii() else _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", quoted)


@METHODS.add_as("parse")
def parse(source: Value, reviver: Value = undefined) -> Value:
    """JSON to a value; a reviver is called with (key, value) from the inside out.

    Raises:
        SyntaxErrorValue: the text is not JSON.
    """
    written = text(source)
    value = _decode(written, _decoder())
    return _revive("", value, reviver) if callable(reviver) else value


def parse_exactly(source: str) -> Value:
    """As `parse`, with all digits of whole numbers, as in values that Python gives.

    Raises:
        SyntaxErrorValue: the text is not JSON.
    """
    return _decode(source, _decoder(_exact_whole))


def _decode(written: str, decoder: json.JSONDecoder) -> Value:
    try:
        value, end = decoder.raw_decode(written, _next(written, 0))
    except json.JSONDecodeError as error:
        # From 3.13 on the comma before a closing bracket is what Python complains of.
        at = _next(written, error.pos + 1) if "trailing comma" in error.msg else error.pos
        raise SyntaxErrorValue(_complaint(written, at)) from error
    end = _next(written, end)
    if end < len(written):
        raise SyntaxErrorValue(f"Unexpected non-whitespace character after JSON at position {end}")
    return value


def is_whole(value: Value) -> bool:
    """Whether a value is a whole number of which all digits can be written."""
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= MAX_BITS


def _next(source: str, at: int) -> int:
    """The position of the next character that is not blank."""
    while source[at : at + 1] in _BLANKS:
        at += 1
    return at


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 16 and digits != "-0" else to_compact(float(digits))


def _exact_whole(digits: str) -> int | float:
    return int(digits) if len(digits) < MAX_DIGITS and digits != "-0" else to_compact(float(digits))


@cache
def _decoder(whole: Callable[[str], int | float] = _whole) -> json.JSONDecoder:
    return json.JSONDecoder(parse_int=whole, parse_float=_real, parse_constant=_refuse)


def _real(digits: str) -> int | float:
    return to_compact(float(digits))


def _refuse(name: str) -> Value:
    raise SyntaxErrorValue(f'"{name}" is not valid JSON')


def _complaint(source: str, at: int) -> str:
    """What is wrong at a position, with the text around it."""
    at = _next(source, at)
    word = next((word for word in _WORDS if word[0] == source[at : at + 1]), "")
    while word and source[at : at + 1] == word[0]:
        at, word = at + 1, word[1:]
    if at >= len(source):
        return "Unexpected end of JSON input"
    if len(source) <= 40:
        return f"Unexpected token '{source[at]}', \"{source}\" is not valid JSON"
    before, after = "..." if at > 10 else "", "..." if at + 10 < len(source) else ""
    return f"Unexpected token '{source[at]}', {before}\"{source[max(0, at - 10) : at + 10]}\"{after} is not valid JSON"


def _revive(key: str, value: Value, reviver: Callable[..., Value]) -> Value:
    if is_record(value) or is_array(value):
        for name, item in own_entries(value):
            revived = _revive(name, item, reviver)
            _replace(value, name, revived)
    return apply(reviver, key, value)


def _replace(holder: Value, name: str, revived: Value) -> None:
    """Put what a reviver returned in place; a member it returned undefined for goes."""
    if isinstance(holder, list):
        holder[int(name)] = revived
    elif revived is undefined:
        del holder[name]
    else:
        holder[name] = revived


JSON = namespace(METHODS)
