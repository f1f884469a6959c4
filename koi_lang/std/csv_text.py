"""Text in the form of CSV to rows, and rows to such a text."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.conversions import text as text_of
from koi_lang.js.json_text import stringify
from koi_lang.js.undefined import nullish

MOST_ROWS = 100_000
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
            if len(found) > MOST_ROWS:
                raise AgentError(f"there are more than {MOST_ROWS:,} rows", help="Split the text.")
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
            told = f"row {number} has {len(row)} cells, and the first row names {len(names)} columns"
            raise AgentError(told, help="Look for a delimiter too many, or a missing quote.")
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
