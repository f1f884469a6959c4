"""The lines of a file, to be searched for lines that follow each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from koi_lang.std.code.indentation import BLANK, is_same_for_the_eye

MAX_PLACES = 50
# A line that stands more often says little of the place, and takes time.
MAX_REPEATS = 20
SHOWN = 80


class FileLines:
    """Lines without their ends; behind them stands an empty one, which is often shown as if it were there."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    @cached_property
    def _trimmed_text(self) -> str:
        return _join(line.rstrip(BLANK) for line in (*self.lines, ""))

    @cached_property
    def _bare_text(self) -> str:
        return _join(line.strip(BLANK) for line in (*self.lines, ""))

    def places(self, wanted: Sequence[str]) -> list[int]:
        """The positions of some lines, ignoring final blanks; at most MAX_PLACES + 1, from 0."""
        return _find_all(self._trimmed_text, _join(line.rstrip(BLANK) for line in wanted))

    def bare_places(self, wanted: Sequence[str]) -> list[int]:
        """Where lines stand, however they are indented; at most MAX_PLACES + 1, from 0."""
        return _find_all(self._bare_text, _join(line.strip(BLANK) for line in wanted))

    def similar_places(self, wanted: Sequence[str]) -> list[int]:
        """Where lines stand that nobody can tell from these: tabs for blanks, or other blanks behind them."""
        same = set(self.places(wanted))
        return [
            place
            for place in self.bare_places(wanted)
            if place in same or is_same_for_the_eye(wanted, self.at(place, len(wanted)))
        ]

    def at(self, start: int, count: int) -> list[str]:
        """So many lines from a place; the empty one behind the end included."""
        return [*self.lines[start : start + count], ""][:count]

    def matching(self, wanted: Sequence[str], start: int, step: int) -> Sequence[str]:
        """Those lines that stand where they are wanted, from a place on or back to the first that differs."""
        for count, line in enumerate(wanted):
            if not 0 <= start < len(self.lines) or self.lines[start].strip(BLANK) != line.strip(BLANK):
                return wanted[:count]
            start += step
        return wanted

    def nearest(self, wanted: Sequence[str]) -> str:
        """The position of most of some lines and the difference there, for a message; empty for none."""
        votes = self._votes(wanted)
        start = min(votes, key=lambda place: (-votes[place], place), default=None)
        if start is None:
            return ""
        for number, line in enumerate(wanted, start):
            stands = self.lines[number] if 0 <= number < len(self.lines) else None
            if stands is None or stands.strip(BLANK) != line.strip(BLANK):
                message = "lies outside of the file" if stands is None else f"is `{_cut(stands)}`"
                return f"; nearest is line {max(start, 0) + 1}, where line {number + 1} {message}, not `{_cut(line)}`"
        return f"; line {start + 1} differs in its indentation"

    def _votes(self, wanted: Sequence[str]) -> Counter[int]:
        """How many lines speak for each place."""
        sought = {line.strip(BLANK) for line in wanted if is_telling(line)}
        found: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            bare = line.strip(BLANK)
            if bare in sought and len(found[bare]) <= MAX_REPEATS:
                found[bare].append(number)
        return Counter(
            place - at
            for at, line in enumerate(wanted)
            for place in found.get(line.strip(BLANK), ())
            if len(found[line.strip(BLANK)]) <= MAX_REPEATS
        )


def is_telling(line: str) -> bool:
    """Whether a line is more than brackets and blanks."""
    return any(map(str.isalnum, line))


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def _join(lines: Iterable[str]) -> str:
    return "\n" + "".join(line + "\n" for line in lines)


def _find_all(text: str, wanted: str) -> list[int]:
    found: list[int] = []
    at = text.find(wanted)
    line = 0
    behind = 0
    while at >= 0 and len(found) <= MAX_PLACES:
        line, behind = line + text.count("\n", behind, at), at
        found.append(line)
        at = text.find(wanted, at + 1)
    return found
