"""Objects to an aligned table for terminals, however wide their characters and however narrow the terminal."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.conversions import is_number
from koi_lang.js.conversions import text as text_of
from koi_lang.js.environment import current_environment
from koi_lang.js.json_text import stringify
from koi_lang.js.undefined import nullish
from koi_lang.system.text_width import clean, clip_text, pad_text, width, wrap_text

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


MAX_ROWS = 100_000
# A spreadsheet may take what begins with these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(text: str, delimiter: str) -> list[list[str]]:
    """The rows of a text as lists of cells; empty lines are left out. Raises AgentError."""
    _require_delimiter(delimiter)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter, strict=True)
    found: list[list[str]] = []
    try:
        for row in reader:
            if row:
                found.append(row)
            if len(found) > MAX_ROWS:
                raise AgentError(f"there are more than {MAX_ROWS:,} rows", help="Split the text.")
    except csv.Error as error:
        raise AgentError(f"line {reader.line_num} is no CSV: {error}") from error
    return found


def records(text: str, delimiter: str) -> list[dict[str, str]]:
    """Every row as an object, by the names in the first one. Raises AgentError for rows of another length."""
    head, *others = rows(text, delimiter) or [[]]
    names = [name.strip() for name in head]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise AgentError(f"two columns are called `{twice}`", help="Rename one, or read the text with `csvRows`.")
    for number, row in enumerate(others, 2):
        if len(row) != len(names):
            message = f"row {number} has {len(row)} cells, and the first row names {len(names)} columns"
            raise AgentError(message, help="Look for a delimiter too many, or a missing quote.")
    return [dict(zip(names, row, strict=True)) for row in others]


def guess_delimiter(text: str) -> str:
    """The delimiter that the first line holds most of: a comma, a semicolon, a tab or a bar."""
    first = text.partition("\n")[0]
    return max(",;\t|", key=first.count)


def write_csv(items: Sequence[Any], columns: Sequence[str], delimiter: str, plain: bool) -> str:
    """Objects, or lists of cells, as CSV with a line end behind each row.

    Args:
        columns: which members of objects are written, in order; none for all that occur.
        plain: whether cells that a spreadsheet would take for formulas are written as they are.
    """
    _require_delimiter(delimiter)
    names = list(columns) or columns_of(items)
    body = [[item.get(name) for name in names] if isinstance(item, Mapping) else item for item in items]
    lines: list[str] = []
    # Cells that hold a character of the line end are quoted, a carriage return too, so it is both while cells are made.
    writer = csv.writer(SimpleNamespace(write=lines.append), delimiter=delimiter, lineterminator="\r\n")
    if names:
        writer.writerow(names)
    for row in body:
        if not isinstance(row, list):
            raise AgentError("every row must be an object or a list of cells")
        writer.writerow([_cell(cell, plain) for cell in row])
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def columns_of(items: Sequence[Any]) -> list[str]:
    """The names of members of some objects, in the order in which they are met."""
    return list(dict.fromkeys(name for item in items if isinstance(item, Mapping) for name in item))


def cell_text(value: Any) -> str:
    """A value as a cell holds it: texts and numbers as they are, objects and lists as JSON, nothing as nothing."""
    if nullish(value):
        return ""
    return str(stringify(value)) if isinstance(value, (dict, list)) else text_of(value)


def _cell(value: Any, plain: bool) -> str:
    cell = cell_text(value)
    return f"'{cell}" if not plain and isinstance(value, str) and cell.startswith(FORMULA) else cell


def _require_delimiter(delimiter: str) -> None:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n ':
        raise AgentError(f"{delimiter!r} cannot stand between cells", help="Use one character, such as `;`.")
