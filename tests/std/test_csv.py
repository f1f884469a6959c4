"""CSV as other programs read it."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from koi_lang.std.tables import rows, write_csv

CELLS = st.text(alphabet="a;,\"'\r\n\t |é=0", max_size=6)
TABLES = st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=5)


@given(TABLES, st.sampled_from(",;\t|"))
@example([["a\rb", "c"], [""], ["\r"]], ",")
def test_python_reads_back_what_was_written(table: list[list[str]], delimiter: str) -> None:
    """Whatever stands in cells, lone carriage returns included, other readers get the same cells, as ours does."""
    text = write_csv(table, [], delimiter, True)

    assert [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row] == table
    assert rows(text, delimiter) == table


def test_lines_end_with_a_line_feed() -> None:
    """A table without peculiar cells is written as it always was."""
    assert write_csv([{"a": 1, "b": "x, y"}], [], ",", False) == 'a,b\n1,"x, y"\n'
