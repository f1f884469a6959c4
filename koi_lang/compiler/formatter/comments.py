"""Comments between two tokens: on which line each is put, and at which column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from koi_lang.compiler.formatter.pieces import Comment, Piece


class TrailingComment(NamedTuple):
    """A comment behind code: the index of its line, how wide the code is, and the column it was written at."""

    line: int
    width: int
    column: int


def align(lines: list[str], comments: Sequence[TrailingComment]) -> None:
    """Put comments on neighbouring lines below each other, and those that were written in one column."""
    group: list[TrailingComment] = []
    for comment in comments:
        if group and not _belong_together(lines, group[-1], comment):
            _align_group(lines, group)
            group = []
        group.append(comment)
    _align_group(lines, group)


def _belong_together(lines: list[str], above: TrailingComment, below: TrailingComment) -> bool:
    if above.column == below.column:
        return True
    return above.line + 1 == below.line and _indentation(lines[above.line]) == _indentation(lines[below.line])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _align_group(lines: list[str], group: Sequence[TrailingComment]) -> None:
    width = max((comment.width for comment in group), default=0)
    for comment in group:
        above, newline, line = lines[comment.line].rpartition("\n")
        lines[comment.line] = above + newline + line[: comment.width].ljust(width) + line[comment.width :]


def last_width(text: str) -> int:
    """How many columns the last line of a text has."""
    return len(text) - text.rfind("\n") - 1


def sort_comments(piece: Piece, *, is_first: bool) -> tuple[Sequence[Comment], Sequence[Comment], Sequence[Comment]]:
    """The comments before a piece that begins a line.

    Args:
        is_first: whether it is the first piece of the program, with no line before it.

    Returns:
        Those behind the piece before, those on lines between the two, and those on the line of the piece.
    """
    comments = piece.comments
    begin = len(comments)
    newlines = piece.newlines
    while begin and not newlines and not comments[begin - 1].is_line and piece.kind != "END":
        begin -= 1
        newlines = comments[begin].newlines
    end = 0
    while end < begin and not comments[end].newlines and not is_first:
        end += 1
    return comments[:end], comments[end:begin], comments[begin:]


def indent_comment(comment: Comment, column: int) -> list[str]:
    """The lines of a comment that is to begin at a column, all but the first with their indentation.

    The later lines of a comment keep their place relative to its first one.
    """
    first, *others = comment.text.split("\n")
    moved = column - comment.column
    lines = [first.rstrip()]
    for line in others:
        bare = line.strip()
        lines.append(" " * max(0, len(line) - len(line.lstrip()) + moved) + bare if bare else "")
    return lines
