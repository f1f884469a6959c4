"""Texts to parts of addresses and back: `encodeURIComponent` and its kin, `btoa` and `atob`."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from itertools import accumulate

from koi_lang.js.conversions import text
from koi_lang.js.errors import ErrorValue, URIErrorValue
from koi_lang.js.method_tables import MethodTable
from koi_lang.js.undefined import Value, undefined

GLOBALS = MethodTable()
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


@GLOBALS.add_as("encodeURIComponent")
def _encode_component(value: Value = undefined) -> str:
    return _encode(text(value), _PLAIN)


@GLOBALS.add_as("encodeURI")
def _encode_uri(value: Value = undefined) -> str:
    return _encode(text(value), _PLAIN | _RESERVED)


@GLOBALS.add_as("decodeURIComponent")
def _decode_component(value: Value = undefined) -> str:
    return _decode(text(value), frozenset())


@GLOBALS.add_as("decodeURI")
def _decode_uri(value: Value = undefined) -> str:
    return _decode(text(value), _RESERVED)


@GLOBALS.add_as("btoa")
def _btoa(value: Value) -> str:
    try:
        return b2a_base64(text(value).encode("latin-1"), newline=False).decode()
    except UnicodeEncodeError as error:
        raise ErrorValue("Invalid character") from error


@GLOBALS.add_as("atob")
def _atob(value: Value) -> str:
    source = re.sub(r"[\t\n\f\r ]", "", text(value)).rstrip("=")
    try:
        return a2b_base64(source + "=" * (-len(source) % 4), strict_mode=True).decode("latin-1")
    except (Error, ValueError) as error:
        raise ErrorValue("The string to be decoded is not correctly encoded.") from error
