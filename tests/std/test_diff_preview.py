"""What a person is shown of a change before it happens."""

from __future__ import annotations

import random

from koi_lang.std.code.changing import MAX_LINE_CHARS, unified_diff
from koi_lang.std.code.line_changes import split_lines


def test_a_preview_is_a_diff_that_leads_to_the_new_text() -> None:
    """What a person is shown is what happens."""
    chance = random.Random(4)
    for _ in range(300):
        before, after = (
            "".join(f"{each}\n" for each in chance.choices("abcdef", k=chance.randrange(30))) for _ in "xy"
        )
        diff = unified_diff(before, after, "x")

        assert after == (_apply_strictly(before, diff) if diff else before)


def _apply_strictly(text: str, diff: str) -> str:
    """What a diff makes of a text by its numbers alone."""
    old, out, at = split_lines(text)[0], [], 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            start, count = map(int, line.split()[1][1:].split(","))
            upto = start - 1 if count else start
            out += old[at:upto]
            at = upto
        elif line.startswith("+"):
            out.append(line[1:])
        else:
            assert old[at] == line[1:]
            out += [line[1:]] * line.startswith(" ")
            at += 1
    return "".join(f"{each}\n" for each in out + old[at:])


def test_a_preview_is_bounded() -> None:
    """A huge change is told by its beginning and how much more there is; what a file may have is told whole."""
    after = "x" * 200_000 + "\n" + "y\n" * 100_000
    lines = unified_diff("", after, "x", most_lines=400).split("\n")

    assert 401 == len(lines)
    assert "… 99,604 more lines of this difference" == lines[-1]
    assert max(map(len, lines)) <= MAX_LINE_CHARS + 2
    assert 100_004 == unified_diff("", after, "x").count("\n") + 1
