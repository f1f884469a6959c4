"""Values without members to the text they have inside an inspected object."""

from __future__ import annotations

import math
import re
from inspect import iscoroutinefunction

from koi_lang.js.accessors import Accessor
from koi_lang.js.calling import function_name
from koi_lang.js.conversions import text
from koi_lang.js.dates import DateValue
from koi_lang.js.method_tables import Constructor
from koi_lang.js.regexes import RegExpValue
from koi_lang.js.tagged_json import type_name
from koi_lang.js.undefined import Value, undefined

_NAME = re.compile("[a-zA-Z_][a-zA-Z_0-9]*")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\v": "\\x0B", "\\": "\\\\"}
_MAX_CHARS = 10_000
_MAX_BYTES = 50
# Modules of Python whose values are one text each.
_PLAIN = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib"})


def quote_text(text: str) -> str:
    """A text in quotes: single ones, or those that need no escape."""
    quote = "'"
    if "'" in text:
        quote = '"' if '"' not in text else "`" if "`" not in text and "${" not in text else "'"
    escaped = _UNSEEN.sub(_escape, text)
    return quote + (escaped.replace("'", "\\'") if quote == "'" else escaped) + quote


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _ESCAPES.get(found[0], f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}")


def key_text(name: str) -> str:
    """The name of a member, in quotes unless it is an identifier."""
    return name if _NAME.fullmatch(name) else quote_text(name)


def string_text(text: str, room: int, margin: int) -> str:
    """A string in quotes; one too long for the room is broken after its line ends."""
    cut = len(text) - _MAX_CHARS
    more = f"... {cut} more character{'s' if cut > 1 else ''}" if cut > 0 else ""
    text = text[:_MAX_CHARS]
    if len(text) <= 16 or len(text) <= room:
        return quote_text(text) + more
    lines = re.split(r"(?<=\n)", text)
    lines = lines if lines[-1] or len(lines) == 1 else lines[:-1]
    return (" +\n" + " " * margin).join(map(quote_text, lines)) + more


def number_leaf(n: int | float) -> str:
    """A number, with the sign of -0."""
    return "-0" if n == 0 and math.copysign(1, n) < 0 else text(n)


def leaf(value: Value) -> str | None:
    """What has no members (other than strings), None for the rest."""
    if value is None or value is undefined:
        return "null" if value is None else "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_leaf(value)
    if isinstance(value, DateValue):
        return value.iso() if value.valid else str(value)
    if isinstance(value, RegExpValue):
        return str(value)
    if isinstance(value, Accessor):
        return value.title
    return function_text(value) if callable(value) else _of_python(value)


def _of_python(value: Value) -> str | None:
    """What Python modules give and Koi has no literal for: dates in ISO form, exact numbers, bytes as by Node."""
    if isinstance(value, bytes | bytearray):
        more = f" ... {len(value) - _MAX_BYTES} more bytes" if len(value) > _MAX_BYTES else ""
        return f"<Buffer {value[:_MAX_BYTES].hex(' ')}{more}>"
    if type_name(type(value)).partition(".")[0] not in _PLAIN:
        return None
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def function_text(f: Value) -> str:
    """`[Function: name]` and its kin."""
    if isinstance(f, type):
        return f"[class {f.__name__}]"
    name = function_name(f)
    kind = "Function" if isinstance(f, Constructor) or not iscoroutinefunction(f) else "AsyncFunction"
    kind = getattr(f, "__koi_kind_of_function__", kind)
    return f"[{kind}: {name}]" if name else f"[{kind} (anonymous)]"
