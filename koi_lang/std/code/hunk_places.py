"""Where in a file a hunk belongs: the one place that it fits, or an error that names those that it might."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from koi_lang.errors import AgentError
from koi_lang.std.code.file_lines import MAX_PLACES, FileLines, is_telling
from koi_lang.std.code.hunks import Hunk
from koi_lang.std.code.indentation import BLANK, carry_indentation, indentation

SHOW_MORE = "Give more of the lines around it, as they stand in the file."
READ_AGAIN = "Read the file again, and give its lines as they stand there."


@dataclass(frozen=True, slots=True)
class HunkPlace:
    """A hunk as it fits, and the line of the file that its first old line is, from 0.

    Attributes:
        note: what was passed over to find it, a sentence or nothing.
        is_done: whether the file holds what the hunk wants already.
    """

    hunk: Hunk
    start: int
    note: str = ""
    is_done: bool = False


class AmbiguousPlaceError(AgentError):
    """A hunk fits in several places.

    Attributes:
        places: the lines where it does, from 0.
    """

    def __init__(self, hunk: Hunk, places: Sequence[int], help: str = SHOW_MORE) -> None:
        super().__init__(f"{hunk.name} fits in more than one place: at {tell_lines(places)}", help=help)
        self.places = tuple(places)


def tell_lines(places: Sequence[int]) -> str:
    """Places as numbers of lines, for a message: the first ten."""
    more = ["more"] * (len(places) > MAX_PLACES) or [f"{len(places) - 10} more"] * (len(places) > 10)
    numbers = [*(str(place + 1) for place in places[:10]), *more]
    return f"line {numbers[0]}" if len(numbers) == 1 else f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"


def find_place(file: FileLines, hunk: Hunk, *, is_whole: bool = False) -> HunkPlace:
    """The place of a hunk, with growing tolerance for how its lines are shown.

    Args:
        is_whole: all of its lines count; else those around the changes may differ, at its ends.

    Raises:
        AgentError: it fits nowhere, or in several places.
    """
    if not any(map(is_telling, hunk.before)) and len(hunk.before) < len(file.lines):
        raise AgentError(f"{hunk.name} does not say where it belongs", help=SHOW_MORE)
    readings = [hunk, replace(hunk, lines=hunk.unmarked)] if hunk.unmarked else [hunk]
    for reading in readings:
        if (place := _find_as_shown(file, reading)) is not None:
            return place
    if (place := _find_shifted(file, hunk)) is not None:
        return place
    if not is_whole and (place := _find_done(file, hunk) or _find_trimmed(file, hunk)) is not None:
        return place
    raise AgentError(f"{hunk.name} fits nowhere{file.nearest(hunk.before)}", help=READ_AGAIN)


def _find_as_shown(file: FileLines, hunk: Hunk) -> HunkPlace | None:
    """Where the lines stand but for blanks behind them, unless they stand elsewhere, too, with another indentation."""
    exact = _possible(file, hunk, file.places(hunk.before))
    if not exact:
        return None
    if hunk.start in exact:
        return HunkPlace(hunk, hunk.start)
    if hunk.start is not None and _is_done_at(file, hunk, hunk.start):
        raise AmbiguousPlaceError(hunk, exact, f"It is done already at line {hunk.start + 1}; {SHOW_MORE.lower()}")
    start = _the_only(file, hunk, _possible(file, hunk, file.bare_places(hunk.before)))
    note = "" if hunk.start is None else f"{hunk.name} belongs to line {start + 1}, not {hunk.start + 1}"
    return HunkPlace(hunk, start, note)


def _find_shifted(file: FileLines, hunk: Hunk) -> HunkPlace | None:
    """Where the lines stand with an indentation that all of them are shifted by."""
    places = _possible(file, hunk, file.bare_places(hunk.before))
    return _carry(file, hunk, _the_only(file, hunk, places)) if places else None


def _carry(file: FileLines, hunk: Hunk, start: int) -> HunkPlace:
    """A hunk with its new lines indented as the file is. Raises AgentError where that is not certain."""
    before = hunk.before
    added = carry_indentation(before, file.at(start, len(before)), hunk.new_lines)
    if added is None:
        message = f"{hunk.name} is indented otherwise than line {start + 1} of the file, and by no rule that is certain"
        raise AgentError(message, help=READ_AGAIN)
    return HunkPlace(hunk.with_new_lines(added), start, f"{hunk.name} was indented like line {start + 1} of the file")


def _find_done(file: FileLines, hunk: Hunk) -> HunkPlace | None:
    """Where the lines stand as they are to become."""
    wanted = hunk.new_lines or hunk.after
    if sum(map(is_telling, wanted)) < (1 if hunk.new_lines else 2):
        return None
    places = file.places(hunk.after)
    return HunkPlace(hunk, places[0], is_done=True) if places else None


def _is_done_at(file: FileLines, hunk: Hunk, start: int) -> bool:
    after = [line.rstrip(BLANK) for line in hunk.after]
    return bool(hunk.new_lines) and after == [line.rstrip(BLANK) for line in file.at(start, len(after))]


def _find_trimmed(file: FileLines, hunk: Hunk) -> HunkPlace | None:
    """Where the changed lines stand, if those around them are another at the ends of the hunk only."""
    lead, trail = _outer_lines(hunk)
    core = replace(hunk, lines=hunk.lines[lead : len(hunk.lines) - trail])
    if not (lead or trail) or not any(map(is_telling, core.before)):
        return None
    places = _possible(file, core, file.bare_places(core.before))
    before = [text for _, text in reversed(hunk.lines[:lead])]
    behind = [text for _, text in hunk.lines[len(hunk.lines) - trail :]] if trail else []
    length = len(core.before)
    around = {
        start: (file.matching(before, start - 1, -1), file.matching(behind, start + length, 1)) for start in places
    }
    support = {start: sum(map(is_telling, (*above, *below))) for start, (above, below) in around.items()}
    best = max(places, key=lambda start: support[start], default=None)
    if best is None:
        return None
    if not _is_certain(core, support, best):
        raise AmbiguousPlaceError(hunk, places) if len(places) > 1 else _lonely(hunk, best)
    above, below = map(len, around[best])
    fitting = replace(hunk, lines=hunk.lines[lead - above : len(hunk.lines) - trail + below])
    start = best - above
    place = HunkPlace(fitting, start) if start in file.places(fitting.before) else _carry(file, fitting, start)
    return replace(place, note=f"{hunk.name} belongs to line {start + 1}; lines around it are others in the file")


def _lonely(hunk: Hunk, start: int) -> AgentError:
    message = f"{hunk.name} would fit at line {start + 1} only, but none of the lines around it stands there"
    return AgentError(message, help=READ_AGAIN)


def _is_certain(core: Hunk, support: Mapping[int, int], best: int) -> bool:
    """Whether lines around a place speak for it, and none for any other."""
    if len(support) == 1:
        return support[best] > 0 or any(mark == " " and is_telling(text) for mark, text in core.lines)
    return support[best] > 1 and not any(votes for place, votes in support.items() if place != best)


def _outer_lines(hunk: Hunk) -> tuple[int, int]:
    """How many lines at both ends of a hunk may be left out.

    New lines that replace none keep the nearest telling lines on both sides: between them is their place.
    """
    marks = [mark for mark, _ in hunk.lines]
    lead = len(list(takewhile(lambda mark: mark == " ", marks)))
    trail = len(list(takewhile(lambda mark: mark == " ", reversed(marks))))
    changed = "".join(marks[lead : len(marks) - trail])
    if changed.lstrip("+")[:1] != "-":
        lead = _before_last_telling([text for _, text in hunk.lines[:lead]])
    if changed.rstrip("+")[-1:] != "-":
        trail = _before_last_telling([text for _, text in reversed(hunk.lines[len(marks) - trail :])]) if trail else 0
    return lead, trail


def _before_last_telling(lines: Sequence[str]) -> int:
    return max((number for number, line in enumerate(lines) if is_telling(line)), default=0)


def _possible(file: FileLines, hunk: Hunk, places: Sequence[int]) -> list[int]:
    """Places without those where something would be changed behind the end of the file."""
    length = len(hunk.before)
    return [start for start in places if start + length <= len(file.lines) or hunk.lines[-1][0] == " "]


def _the_only(file: FileLines, hunk: Hunk, places: Sequence[int]) -> int:
    """The one place, or the one below the line that the hunk's heading is. Raises AmbiguousPlaceError."""
    if len(places) == 1:
        return places[0]
    tops = file.bare_places([hunk.heading]) if is_telling(hunk.heading) else []
    if len(tops) == 1 and len(places) <= MAX_PLACES:
        end = _block_end(file, tops[0])
        inside = [place for place in places if tops[0] < place < end]
        if len(inside) == 1:
            return inside[0]
    raise AmbiguousPlaceError(hunk, places)


def _block_end(file: FileLines, top: int) -> int:
    """The first line that is indented no deeper than the one that heads a block."""
    depth = len(indentation(file.lines[top]))
    behind = range(top + 1, len(file.lines))
    return next(
        (at for at in behind if file.lines[at].strip() and len(indentation(file.lines[at])) <= depth), len(file.lines)
    )
