"""The written members of a value to lines, as Node's `util.inspect` breaks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from unicodedata import category, east_asian_width

from koi_lang.js.conversions import is_number
from koi_lang.js.undefined import Value

WIDTH = 80
_MAX_COLUMNS = 12
_GAP = 2


def fits(entries: Sequence[str], start: int, base: str) -> bool:
    """Whether entries go on one line that has `start` characters already."""
    return sum(map(len, entries)) + len(entries) + start <= WIDTH and "\n" not in base


def group_columns(entries: list[str], indent: int, hidden: bool, items: Sequence[Value]) -> list[str]:
    """More than six items of an array to rows of columns, where they are short and alike enough.

    Args:
        entries: the written items.
        indent: how far the array is indented.
        hidden: whether the last entry stands for items left out.
        items: the array, numbers are aligned on the right.
    """
    shown = entries[:-1] if hidden else entries
    lengths = [display_width(entry) for entry in shown]
    widest = max(lengths) + _GAP
    total = sum(lengths) + _GAP * len(lengths)
    if widest * 3 + indent >= WIDTH or (total / widest <= 5 and widest - _GAP > 6):
        return entries
    columns = _columns(len(shown), widest, total / len(entries), indent)
    if columns <= 1:
        return entries
    widths = [max(lengths[column::columns]) + _GAP for column in range(columns)]
    numeric = len(items) >= len(entries) and all(map(is_number, items[: len(entries)]))
    pad = _right if numeric else _left
    rows = [_row(shown[at : at + columns], widths, pad) for at in range(0, len(shown), columns)]
    return [*rows, *entries[len(shown) :]]


def _columns(count: int, widest: int, average: float, indent: int) -> int:
    """About a square, no wider than the line, at most twelve."""
    biased = max(widest - 3 - math.sqrt(widest - average), 1)
    square = math.floor(math.sqrt(2.5 * biased * count) / biased + 0.5)
    return min(square, (WIDTH - indent) // widest, _MAX_COLUMNS)


def _row(entries: list[str], widths: list[int], pad: Callable[[str, int], str]) -> str:
    padded = [pad(entry + ", ", width) for entry, width in zip(entries[:-1], widths, strict=False)]
    last = entries[-1]
    return "".join(padded) + (_right(last, widths[len(padded)] - _GAP) if pad is _right else last)


def _left(entry: str, width: int) -> str:
    return entry + " " * (width - display_width(entry))


def _right(entry: str, width: int) -> str:
    return " " * (width - display_width(entry)) + entry


def display_width(entry: str) -> int:
    """How many columns of a terminal a text takes."""
    if entry.isascii():
        return len(entry)
    return sum(
        0 if category(character) in ("Mn", "Me", "Cf") else 2 if east_asian_width(character) in "WF" else 1
        for character in entry
    )


def enclose(entries: list[str], braces: tuple[str, str], base: str, indent: int, flat: bool) -> str:
    """Entries between braces: on one line when `flat` allows it and they fit, else one on a line."""
    left, right = braces
    before = f"{base} {left}" if base else left
    if flat:
        start = len(entries) + indent + len(left) + len(base) + 10
        joined = ", ".join(entries)
        if fits(entries, start, base) and "\n" not in joined:
            return f"{before} {joined} {right}"
    margin = "\n" + " " * indent
    return f"{before}{margin}  {f',{margin}  '.join(entries)}{margin}{right}"
