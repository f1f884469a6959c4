r"""Edits of a text by a model: a piece with its replacement, or a unified diff.

Texts have lines that end with `\n`. Nothing is changed where it is not certain which place is meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from koi_lang.errors import AgentError
from koi_lang.std.code.file_lines import FileLines, is_telling
from koi_lang.std.code.hunk_places import READ_AGAIN, SHOW_MORE, AmbiguousPlaceError, HunkPlace, find_place, tell_lines
from koi_lang.std.code.hunks import Hunk, parse_diff
from koi_lang.std.code.indentation import BLANK
from koi_lang.std.code.line_changes import (
    EditedText,
    LineChange,
    apply_changes,
    changes_between,
    join_lines,
    split_lines,
)
from koi_lang.std.code.text_files import plain_ends

MAX_REPORTED = 10
PIECE = "`before`"
# Ends of lines behind which deeper ones follow.
OPENING = (":", "{", "(", "[", ",", "=", ">", "\\")


def replace_text(text: str, new: str) -> EditedText:
    """Another text in place of all of one."""
    return EditedText(new, changes_between(split_lines(text)[0], split_lines(new)[0]))


def replace_piece(text: str, before: str, after: str) -> EditedText:
    """Replace a piece that stands in a text once.

    Where it does not stand there as it is, whole lines are found whose blanks differ, if there is one such place and
    the new lines can be indented like it with certainty.

    Raises:
        AgentError: the piece stands nowhere or more than once, which is said with the lines.
    """
    before, after = plain_ends(before), plain_ends(after)
    if before == after:
        raise AgentError("`before` and `after` are the same, so that nothing changes")
    if not before.strip():
        return _fill(text, before, after)
    places = _places_of(text, before)
    if not places:
        return _replace_lines(text, before, after)
    if len(places) > 1:
        times = max(text.count(before), len(places))
        lines = tell_lines([text.count("\n", 0, place) for place in places])
        more = "" if times <= MAX_REPORTED else " and on"
        raise AgentError(f"{PIECE} stands {times:,} times in the file: at {lines}{more}", help=SHOW_MORE)
    if _is_unindented(text, places[0], before, after):
        return _replace_lines(text, before, after)
    return _replace_at(text, places[0], before, after)


def apply_diff(text: str, diff: str) -> EditedText:
    """Change a text by a unified diff, all of whose hunks must fit; headers and numbers may be missing or wrong.

    Raises:
        AgentError: a hunk fits nowhere or in more than one place, or all of them are done already.
    """
    hunks = parse_diff(plain_ends(diff))
    lines, is_ended = split_lines(text)
    if not lines:
        return _fill_by(hunks)
    places = _find_places(FileLines(lines), hunks)
    done = [place for place in places if place.is_done]
    if len(done) == len(places):
        at = tell_lines([place.start for place in done])
        raise AgentError(f"the diff seems to be done already: what it makes stands at {at}", help=READ_AGAIN)
    changes = _merge(places, lines)
    is_ended = _is_ended_after(is_ended, [place.hunk for place in places if not place.is_done])
    notes = [f"{place.hunk.name} seems to be done already at line {place.start + 1}" for place in done]
    notes += [place.note for place in places if place.note]
    return EditedText(join_lines(apply_changes(lines, changes), is_ended), changes, tuple(notes))


# ---------------------------------------------------------------- pieces


def _fill(text: str, before: str, after: str) -> EditedText:
    """A text for an empty file. Raises AgentError for a file that is not empty."""
    if text.strip() or (before and before != text):
        help = "Give lines that stand in the file, or write the whole file."
        raise AgentError(f"{PIECE} is empty, and the file is not", help=help)
    return replace_text(text, after)


def _places_of(text: str, piece: str) -> list[int]:
    """Where a piece begins, those that overlap included; at most MAX_REPORTED."""
    found: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(found) < MAX_REPORTED:
        found.append(at)
        at = text.find(piece, at + 1)
    return found


def _replace_at(text: str, at: int, before: str, after: str) -> EditedText:
    end = at + len(before)
    new = text[:at] + after + text[end:]
    first, top = text.count("\n", 0, at), text.rfind("\n", 0, at) + 1
    if "\n" in before and not text[top:at].strip(BLANK):
        _require_unmistakable(text, text[top:end], first, is_indented=at > top)
    is_closed = before.endswith("\n") and (after.endswith("\n") or (not after and at == top))
    # Lines that the piece does not reach are left out: among lines that look the same it is known which are meant.
    behind = text.count("\n", end) + (not text.endswith("\n")) - (not is_closed) if end < len(text) else 0
    old_lines, new_lines = split_lines(text)[0], split_lines(new)[0]
    old, now = (each[first : len(each) - behind] for each in (old_lines, new_lines))
    moved = (LineChange(each.start + first, each.end + first, each.lines) for each in changes_between(old, now))
    return EditedText(new, tuple(moved))


def _is_unindented(text: str, at: int, before: str, after: str) -> bool:
    """Whether whole lines were given without the indentation they have, and new ones, too.

    Raises:
        AgentError: new ones may or may not have it.
    """
    top, end = text.rfind("\n", 0, at) + 1, at + len(before)
    lead = text[top:at]
    is_whole = before.endswith("\n") or text[end : end + 1] in ("", "\n")
    if not lead or lead.strip(BLANK) or not is_whole:
        return False
    if not after:
        return before.endswith("\n")
    first, *others = after.split("\n")
    indented = [line for line in others if line.strip(BLANK)]
    may_nest = "\n" not in before.strip("\n") and first.rstrip(BLANK).endswith(OPENING)
    if may_nest and indented and all(line.startswith(lead) for line in indented):
        raise AgentError(
            f"{PIECE} is indented in the file, and it is not certain how the new lines are to be",
            help="Give whole lines, with the blanks that they begin with.",
        )
    return not first.strip(BLANK) or any(not line.startswith(lead) for line in indented)


def _require_unmistakable(text: str, piece: str, first: int, *, is_indented: bool) -> None:
    """Raise AgentError where the lines stand elsewhere, too, but for blanks, which models often leave out.

    Args:
        is_indented: whether the piece was given without the indentation that it has.
    """
    file, lines = FileLines(split_lines(text)[0]), split_lines(piece)[0]
    is_loose = is_indented or sum(map(is_telling, lines)) > 1
    found = file.bare_places(lines) if is_loose else file.similar_places(lines)
    similar = [place for place in found if place != first]
    if similar:
        message = f"{PIECE} stands at line {first + 1}, and with other blanks at {tell_lines(similar)}"
        raise AgentError(message, help=SHOW_MORE)


def _replace_lines(text: str, before: str, after: str) -> EditedText:
    """Whole lines for others that differ by blanks. Raises AgentError where no place is certain."""
    lines, is_ended = split_lines(text)
    (old, old_ends), (new, new_ends) = split_lines(before), split_lines(after)
    file = FileLines(lines)
    try:
        place = find_place(file, _hunk_of(old, new), is_whole=True)
    except AmbiguousPlaceError as error:
        message = f"{PIECE} does not stand in the file as it is, and but for its blanks at {tell_lines(error.places)}"
        raise AgentError(message, help=SHOW_MORE) from error
    except AgentError as error:
        raise _not_there(text, after, error) from error
    if old_ends != new_ends and place.start + len(old) < len(lines):
        message = (
            f"{PIECE} fits at line {place.start + 1} but for blanks; give it and `after` with the same end of line"
        )
        raise AgentError(message, help=READ_AGAIN)
    changes = _merge([place], lines)
    note = place.note or f"{PIECE} stands at line {place.start + 1} with other blanks"
    return EditedText(join_lines(apply_changes(lines, changes), is_ended), changes, (note,))


def _not_there(text: str, after: str, error: AgentError) -> AgentError:
    """The error that a piece is missing, with a note if its replacement is there already."""
    places = _places_of(text, after) if len(after.strip()) > 3 else []
    if not places:
        return AgentError(error.message.replace("fits nowhere", "stands nowhere in the file"), help=error.help)
    where = tell_lines([text.count("\n", 0, place) for place in places])
    return AgentError(
        f"{PIECE} stands nowhere in the file, but `after` does, at {where}: it seems done", help=READ_AGAIN
    )


def _hunk_of(before: Sequence[str], after: Sequence[str]) -> Hunk:
    """Two texts as a hunk, in which lines that are the same stay as they are in the file."""
    out: list[tuple[str, str]] = []
    at = 0
    for change in changes_between(before, after):
        out += [(" ", line) for line in before[at : change.start]]
        out += [("-", line) for line in before[change.start : change.end]]
        out += [("+", line) for line in change.lines]
        at = change.end
    return Hunk(PIECE, (*out, *((" ", line) for line in before[at:])))


# ---------------------------------------------------------------- diffs


def _fill_by(hunks: Sequence[Hunk]) -> EditedText:
    """The text that a diff makes of an empty file. Raises AgentError where it expects lines."""
    if any(line.strip() for hunk in hunks for line in hunk.before):
        raise AgentError("the diff changes lines, but the file is empty", help=READ_AGAIN)
    lines = [line for hunk in hunks for line in hunk.after]
    is_ended = _is_ended_after(True, hunks)
    return EditedText(join_lines(lines, is_ended), (LineChange(0, 0, tuple(lines)),))


def _find_places(file: FileLines, hunks: Sequence[Hunk]) -> list[HunkPlace]:
    """The place of each hunk; hunks that are the same take as many places in turn, if there are so many."""
    alike: dict[tuple[tuple[str, str], ...], list[Hunk]] = defaultdict(list)
    for hunk in hunks:
        alike[hunk.lines].append(hunk)
    found: list[HunkPlace] = []
    for same in alike.values():
        found += _share_places(file, same) if len(same) > 1 else [find_place(file, same[0])]
    return found


def _share_places(file: FileLines, hunks: Sequence[Hunk]) -> list[HunkPlace]:
    try:
        return [find_place(file, hunk) for hunk in hunks]
    except AmbiguousPlaceError as error:
        if len(error.places) != len(hunks):
            raise
        return [find_place(file, replace(hunk, start=start)) for hunk, start in zip(hunks, error.places, strict=True)]


def _merge(places: Sequence[HunkPlace], lines: Sequence[str]) -> tuple[LineChange, ...]:
    """The changes of all hunks in order. Raises AgentError where two of them change the same lines."""
    changes = [(change, place) for place in places if not place.is_done for change in _changes(place, lines)]
    changes.sort(key=lambda each: (each[0].start, each[0].end))
    for (one, first), (two, second) in pairwise(changes):
        if two.start < one.end or two.start == one.start:
            message = f"{first.hunk.name} and {second.hunk.name} both change line {two.start + 1}"
            raise AgentError(message, help="Make one hunk of them.")
    return tuple(change for change, _ in changes)


def _changes(place: HunkPlace, lines: Sequence[str]) -> Iterator[LineChange]:
    """The changes of one hunk, without lines that stay the same."""
    at, start = place.start, place.start
    new: list[str] = []
    for mark, text in (*place.hunk.lines, (" ", "")):
        if mark == "+":
            new.append(text)
        elif mark == "-":
            at += 1
        else:
            if new or at > start:
                yield from (
                    LineChange(start + each.start, start + each.end, each.lines)
                    for each in changes_between(lines[start:at], new)
                )
            at += 1
            start, new = at, []


def _is_ended_after(is_ended: bool, hunks: Sequence[Hunk]) -> bool:
    """Whether the last line is ended after a diff, which says so where it changes that."""
    marks = "".join(hunk.unended for hunk in hunks)
    if " " in marks or ("-" in marks) == ("+" in marks):
        return is_ended
    return "-" in marks
