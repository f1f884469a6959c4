"""What an edit made of the lines of a file, as a model reads it: numbered, with what stands around."""

from __future__ import annotations

from koi_lang.std.code.line_changes import EditedText, split_lines

AROUND = 2
WIDTH = 5
MOST_SHOWN = 60


def changed_lines(edit: EditedText) -> str:
    """The new lines with their numbers, and two lines around them; of a large change the beginning."""
    new = split_lines(edit.text)[0]
    numbers = dict.fromkeys(
        number
        for first, last in edit.ranges
        for number in range(max(1, first - AROUND), min(len(new), last + AROUND) + 1)
    )
    shown = [f"{number:>{WIDTH}}\t{new[number - 1]}" for number in sorted(numbers)]
    left = len(shown) - MOST_SHOWN
    return "\n".join([*shown[:MOST_SHOWN], *([f"… ({left:,} more lines)"] if left > 0 else [])])
