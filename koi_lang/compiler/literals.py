"""The spelling of a literal to its value."""

from __future__ import annotations

import re

SIMPLE_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0",
    **dict.fromkeys("\n\r\u2028\u2029", ""),
}  # fmt: skip
ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(\d+)(ms|s|m|h)", re.IGNORECASE)
MAX_EXACT_INTEGER = 2**53


def unescape(text: str) -> str:
    """Replace backslash escapes as JavaScript does; an unknown escape is the character itself."""
    if "\\" not in text:
        return str(text)
    joined = re.sub(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", _pair, text, flags=re.IGNORECASE)
    return ESCAPE.sub(_escape, joined)


def _escape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        value = int(code, 16)
        return chr(value) if value <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"
    return SIMPLE_ESCAPES.get(match[4], "" if match[4] == "\r\n" else match[4])


def _pair(match: re.Match[str]) -> str:
    """Two escapes of a UTF-16 surrogate pair to one."""
    high, low = int(match[1], 16) - 0xD800, int(match[2], 16) - 0xDC00
    return f"\\u{{{0x10000 + high * 0x400 + low:x}}}"


def text_of_string(token: str) -> str:
    """The text of a single- or double-quoted literal."""
    return unescape(token[1:-1])


def value_of_literal_type(text: str) -> str | int | float | bool:
    """The value that a text, numeral, `true` or `false` as a type stands for."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text[0] == "-":
        return -number(text[1:])
    return text_of_string(text) if text[0] in "\"'" else number(text)


def text_of_triple(token: str) -> tuple[str, int]:
    """The text of a fenced literal without blank ends, and where it begins within the literal."""
    if set(token) == {'"'} and len(token) == 6:
        return "", 3
    fence = len(token) - len(token.lstrip('"'))
    inner = token[fence:-fence]
    return str(inner.strip()), fence + len(inner) - len(inner.lstrip())


# How numerals begin that are not decimal.
BASES = {"0x": 16, "0o": 8, "0b": 2}


def number(text: str) -> int | float:
    """A numeral to an `int` where a double holds it exactly, else a `float`; `_` between digits is left out."""
    text = text.replace("_", "")
    base = BASES.get(text[:2].lower())
    if base is not None:
        value: int | float = int(text[2:], base)
    elif len(text) < 300 and text.isdigit():
        value = int(text)
    else:
        value = float(text)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= MAX_EXACT_INTEGER else value
    return value if value <= MAX_EXACT_INTEGER else float(value) if value.bit_length() <= 1024 else float("inf")


def duration_s(text: str) -> float:
    """`500ms`, `5s`, `2m` or `1h` in seconds."""
    match = DURATION.fullmatch(text)
    if match is None:
        raise AssertionError(f"not a duration: {text!r}")
    return float(match[1]) * SECONDS[match[2].lower()]
