"""Texts of diffs to hunks, and indentations to those of a file."""

from __future__ import annotations

import pytest

from koi_lang.std.code.hunks import parse_diff
from koi_lang.std.code.indentation import carry_indentation


def test_numbers_count_only_with_right_counts() -> None:
    """A header that miscounts its lines is not believed where they are either."""
    starts = [parse_diff(f"@@ -{numbers} @@\n a\n-b\n+c\n")[0].start for numbers in ("7,2 +7,2", "7,9 +7,2", "7 +7")]

    assert [6, None, None] == starts


def test_empty_lines_behind_a_hunk_are_no_part_of_it() -> None:
    """What separates hunks is left out, unless the header counts it."""
    first, second = parse_diff("@@ -1,2 +1,3 @@\n a\n+b\n\n\n\n@@\n-c\n\n")

    assert ((" ", "a"), ("+", "b"), (" ", "")) == first.lines
    assert (("-", "c"),) == second.lines


def test_lines_without_a_mark_are_read_both_ways() -> None:
    """A line that stays may have lost the blank before it."""
    (hunk,) = parse_diff("if x:\n    a\n-    b\n")

    assert ["if x:", "   a", "    b"] == hunk.before
    assert ["if x:", "    a", "-    b"] == [mark.strip() + text for mark, text in hunk.unmarked]


@pytest.mark.parametrize(
    ("shown", "stands", "new", "expected"),
    [
        (["a", "  b"], ["    a", "      b"], ["c", "  d"], ["    c", "      d"]),
        (["    a"], ["a"], ["    c", "        d"], ["c", "    d"]),
        (["    a", "        b"], ["\ta", "\t\tb"], ["            c"], ["\t\t\tc"]),
        (["\ta", "\t\tb"], ["  a", "    b"], ["\t\t\tc"], ["      c"]),
        (["a", "    b"], ["\ta", "\t\tb"], ["        c", ""], ["\t\t\tc", ""]),
        (["a"], ["\ta"], ["    c"], None),  # how wide a tab is nobody can know
        (["    a"], ["a"], ["c"], None),  # further out than the file goes
        (["a", "b"], ["  a", "    b"], ["c"], None),  # not uniform
        (["", "a"], ["", "a"], ["b"], ["b"]),
        ([""], [""], ["b"], None),  # nothing to go by
    ],
)
def test_indentation_is_carried_over_where_one_way_fits(
    shown: list[str], stands: list[str], new: list[str], expected: list[str] | None
) -> None:
    """New lines are indented like those around them, or not at all."""
    assert expected == carry_indentation(shown, stands, new)
