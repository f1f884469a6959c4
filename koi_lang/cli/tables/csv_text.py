"""Records to CSV that a spreadsheet opens without calculating anything."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

# With these a spreadsheet takes a text for a formula; some of them strip blanks before.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_of(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """A table by RFC 4180: a line of names, CRLF behind every line, quotes where they are needed.

    What is not known is an empty cell. A text that a spreadsheet would calculate gets an apostrophe before it.
    """
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(record.get(name)) for name in columns] for record in records)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.encode("utf-8", "replace").decode("utf-8")  # half of a character cannot be written
        return f"'{plain}" if plain.startswith(FORMULA) or plain.lstrip().startswith(FORMULA) else plain
    return value
