"""Objects to an aligned table for terminals, however wide their characters and however narrow the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.conversions import is_number
from koi_lang.js.environment import current_environment
from koi_lang.std.csv_text import cell_text, columns_of
from koi_lang.text_width import clean, clip_text, pad_text, width, wrap_text

GAP = 2
# A column is not made narrower than this; where that is not enough, each row becomes a block of lines.
NARROWEST = 6


def terminal_width() -> int:
    """How wide the terminal is; 80 columns without one."""
    return int(current_environment().observe("terminal", lambda: shutil.get_terminal_size().columns))


def render_table(items: Sequence[Any], columns: Sequence[str], most: int, is_wrapped: bool) -> str:
    """A table with a line for each row under the names of the columns; numbers stand on the right.

    Args:
        items: objects.
        columns: which members are shown, in order; none for all that occur.
        most: how wide lines may be.
        is_wrapped: whether long cells go on in further lines, instead of being cut.
    """
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AgentError("a table is made of a list of objects", help='Write `[{ name: "tea", price: 3 }]`.')
    names = list(columns) or columns_of(items)
    if not names:
        return ""
    cells = [[clean(cell_text(item.get(name))).strip() for name in names] for item in items]
    widths = _widths(names, cells, max(int(most), 1))
    if widths is None:
        return _blocks(names, cells, int(most))
    right = [_is_numeric([item.get(name) for item in items]) for name in names]
    rule = [["─" * width for width in widths]]
    lines = [*_row(names, widths, right, False), *_row(rule[0], widths, right, False)]
    for row in cells:
        lines += _row(row, widths, right, is_wrapped)
    return "\n".join(lines)


def _is_numeric(values: Sequence[Any]) -> bool:
    numbers = [is_number(value) for value in values if value is not None]
    return bool(numbers) and all(numbers)


def _widths(names: Sequence[str], cells: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """How wide each column becomes: the widest give way until all fit; None where they cannot."""
    columns = zip(names, zip(*cells, strict=True) if cells else [()] * len(names), strict=True)
    widths = [max(width(line) for cell in (name, *column) for line in cell.split("\n")) for name, column in columns]
    room = most - GAP * (len(names) - 1)
    least = sum(min(each, NARROWEST) for each in widths)
    if least > room:
        return None
    while sum(widths) > room:
        widest = max(widths)
        second = max((each for each in widths if each < widest), default=0)
        count = widths.count(widest)
        over = -(-(sum(widths) - room) // count)
        target = max(widest - over, second, NARROWEST)
        if target == widest:
            return None
        widths = [target if each == widest else each for each in widths]
    return widths


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], is_wrapped: bool) -> list[str]:
    """The lines of one row."""
    parts = [
        wrap_text(cell, room) if is_wrapped else [clip_text(cell, room)]
        for cell, room in zip(cells, widths, strict=True)
    ]
    return [
        (" " * GAP)
        .join(
            pad_text(part, room, "right" if to_right else "left")
            for part, room, to_right in zip(line, widths, right, strict=True)
        )
        .rstrip()
        for line in zip_longest(*parts, fillvalue="")
    ]


def _blocks(names: Sequence[str], cells: Sequence[Sequence[str]], most: int) -> str:
    """Each row as lines of `name: value`, where there is no room for columns."""
    rows = (
        "\n".join(part for name, cell in zip(names, row, strict=True) for part in wrap_text(f"{name}: {cell}", most))
        for row in cells
    )
    return "\n\n".join(rows)
