"""Percent-encoding of the parts of URLs, and the form encoding of their queries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_SURROGATE = re.compile("[\ud800-\udfff]")


def _keep_all_but(encoded: str) -> frozenset[str]:
    """The characters that stay as they are in a part that encodes these, controls and what is not ASCII."""
    return frozenset(_PRINTABLE) - frozenset(encoded)


OPAQUE = _keep_all_but("")
FRAGMENT = _keep_all_but(' "<>`')
QUERY = _keep_all_but(' "#<>')
SPECIAL_QUERY = _keep_all_but(" \"#<>'")
PATH = _keep_all_but(' "#<>?`{}')
USERINFO = _keep_all_but(' "#<>?`{}/:;=@[\\]^|')
FORM = frozenset("*-._") | frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def scalar_text(source: str) -> str:
    """A text whose halves of characters are joined, or replaced where the other half is missing."""
    if source.isascii() or not _SURROGATE.search(source):
        return source
    return source.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def percent_encode(source: str, kept: frozenset[str]) -> str:
    """A text with everything escaped but the characters to keep; escapes that are there stay."""
    if kept.issuperset(source):
        return source
    return "".join([c if c in kept else "".join([f"%{byte:02X}" for byte in c.encode()]) for c in source])


def percent_decode(source: str) -> str:
    """A text without its escapes, read as UTF-8."""
    return unquote_to_bytes(source).decode("utf-8", "replace") if "%" in source else source


def parse_form(source: str) -> list[tuple[str, str]]:
    """The pairs of names and values in a query."""
    pairs = [piece.replace("+", " ").partition("=") for piece in source.split("&") if piece]
    return [(percent_decode(name), percent_decode(value)) for name, _, value in pairs]


def form_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs of names and values as a query."""
    return "&".join([f"{_encode_form(name)}={_encode_form(value)}" for name, value in pairs])


def _encode_form(source: str) -> str:
    return "+".join([percent_encode(word, FORM) for word in source.split(" ")])
