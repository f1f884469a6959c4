"""Which lines of a text others stand for in its next version."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Beyond so many pairs of lines they are not compared with each other: that takes time with their square and more.
MAX_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines `start` to before `end` of the old text, counted from 0, and the lines that stand there now."""

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EditedText:
    r"""A text after it was changed.

    Attributes:
        text: all of it; lines end with `\n`.
        changes: in the order of their places, in lines of the old text.
        notes: how the text that was given differs from what stands there, each a sentence.
    """

    text: str
    changes: tuple[LineChange, ...]
    notes: tuple[str, ...] = ()

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last line of each change in the new text, counted from 1.

        The last lies before the first where lines have only been removed.
        """
        found, moved = [], 0
        for change in self.changes:
            first = change.start + moved + 1
            found.append((first, first + len(change.lines) - 1))
            moved += len(change.lines) - (change.end - change.start)
        return tuple(found)


def split_lines(text: str) -> tuple[list[str], bool]:
    """The lines of a text, and whether the last one is ended; that of an empty text would be."""
    if not text:
        return [], True
    is_ended = text.endswith("\n")
    return (text[:-1] if is_ended else text).split("\n"), is_ended


def join_lines(lines: Sequence[str], is_ended: bool) -> str:
    """The text of lines."""
    return "\n".join(lines) + ("\n" if is_ended and lines else "")


def apply_changes(lines: Sequence[str], changes: Iterable[LineChange]) -> list[str]:
    """Lines with their replacements; changes are in order and do not overlap."""
    out: list[str] = []
    at = 0
    for change in changes:
        out += lines[at : change.start]
        out += change.lines
        at = change.end
    return [*out, *lines[at:]]


def changes_between(before: Sequence[str], after: Sequence[str]) -> tuple[LineChange, ...]:
    """The changes between two texts; a single one where there is too much to compare."""
    start, most = 0, min(len(before), len(after))
    while start < most and before[start] == after[start]:
        start += 1
    same = 0
    while same < most - start and before[-1 - same] == after[-1 - same]:
        same += 1
    old, new = before[start : len(before) - same], after[start : len(after) - same]
    if not old and not new:
        return ()
    if len(old) * len(new) > MAX_PAIRS or not old or not new:
        return (LineChange(start, start + len(old), tuple(new)),)
    steps = difflib.SequenceMatcher(None, old, new).get_opcodes()
    return tuple(LineChange(start + a, start + b, tuple(new[c:d])) for kind, a, b, c, d in steps if kind != "equal")
