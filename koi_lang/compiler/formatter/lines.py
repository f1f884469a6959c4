"""Pieces to lines: their indentation, and the blank lines and comments between them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from koi_lang.compiler.formatter.breaks import PROGRAM, Breaks, separates
from koi_lang.compiler.formatter.pieces import CLOSERS, OPENERS, Comment, Piece

STEP = 2


def lay_out(pieces: list[Piece]) -> list[str]:
    """The lines of a program."""
    writer = _Writer(pieces)
    writer.write()
    align(writer.lines, writer.trailing)
    return writer.lines


class _Writer:
    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.breaks = Breaks(pieces)
        # Texts of several lines stay whole, with line ends of their own.
        self.lines: list[str] = []
        # How deep the line of each piece is indented, and the last item that began a line in each pair of brackets.
        self.depths = [0] * len(pieces)
        self.items: dict[int, int] = {}
        self.trailing: list[TrailingComment] = []
        self.splitter = Splitter(pieces, self.breaks)

    def write(self) -> None:
        """Lay out one line after the other."""
        index = 0
        while index < len(self.pieces):
            index = self._write_line(index)

    def _write_line(self, start: int) -> int:
        """Write the line that a piece begins, and what stands above it; the piece that begins the next line."""
        piece, depth = self.pieces[start], self._depth(start)
        trailing, above, leading = sort_comments(piece, is_first=not start)
        self._write_trailing(trailing)
        may_be_spaced = self.breaks.edges[start] is not None
        is_after_opener = start - 1 == self.breaks.around[start] or not start
        column = STEP * (depth + 1 if piece.text in CLOSERS else depth)
        for comment in above:
            self._write_above(comment, column, may_be_spaced and not is_after_opener)
            is_after_opener = False
        if piece.kind == "END":
            return start + 1
        newlines = leading[0].newlines if leading else piece.newlines
        if newlines > 1 and may_be_spaced and not is_after_opener and piece.text not in CLOSERS:
            self.lines.append("")
        return self._write_pieces(start, depth, leading)

    def _write_trailing(self, comments: Sequence[Comment]) -> None:
        """Put comments behind the last line; where there is just one, it may be aligned with others later."""
        if len(comments) == 1 and "\n" not in comments[0].text:
            line = len(self.lines) - 1
            self.trailing.append(TrailingComment(line, last_width(self.lines[line]), comments[0].column))
        for comment in comments:
            self._append(comment)

    def _append(self, comment: Comment) -> None:
        """Put a comment behind the last line."""
        first, *others = indent_comment(comment, last_width(self.lines[-1]) + 2)
        self.lines[-1] += f"  {first}"
        self.lines += others

    def _write_above(self, comment: Comment, column: int, may_be_spaced: bool) -> None:
        if comment.newlines > 1 and may_be_spaced:
            self.lines.append("")
        if self.lines and not comment.newlines:
            self._append(comment)
            return
        first, *others = indent_comment(comment, column)
        self.lines += [" " * column + first, *others]

    def _depth(self, index: int) -> int:
        """How deep the line is indented that a piece begins."""
        piece, opener = self.pieces[index], self.breaks.around[index]
        if piece.text in CLOSERS:
            return self.depths[opener]
        if self.breaks.edges[index] is not None or piece.anchor is not None:
            self.items[opener] = index
            if piece.anchor is not None:
                return self.depths[piece.anchor] + piece.depth
            return 0 if opener == PROGRAM else self.depths[opener] + 1
        return self.depths[self.items[opener] if opener in self.breaks.broken else opener] + 1

    def _write_pieces(self, start: int, depth: int, leading: Sequence[Comment]) -> int:
        """Write the pieces of one line, which is split until it is short enough, or there is nothing left to split."""
        while True:
            parts, columns = self._measure(start, depth, leading, WIDTH + MAX_TAIL_COLUMNS)
            if not self.splitter.split(start, columns):
                break
        if columns[-1] > WIDTH:
            parts, columns = self._measure(start, depth, leading, sys.maxsize)
        end = start + len(columns)
        self.depths[start:end] = [depth] * len(columns)
        self.lines.append("".join(parts))
        return end

    def _measure(
        self, start: int, depth: int, leading: Sequence[Comment], most: int
    ) -> tuple[Sequence[str], Sequence[int]]:
        """The text of the pieces on a line, and for each the column that it ends at, in its own first line.

        Args:
            most: measuring ends at a piece that goes over this column.
        """
        parts, columns = [" " * (STEP * depth)], list[int]()
        column, index = STEP * depth, start
        while index == start or (index < len(self.pieces) and not self.breaks.begins_line(index)):
            text = self._text(index, depth, leading if index == start else self.pieces[index].comments)
            parts.append(text.lstrip(" ") if index == start else text)
            first, newline, _ = parts[-1].partition("\n")
            columns.append(column + len(first))
            if columns[-1] > most:
                break
            column = last_width(text) if newline else columns[-1]
            index += 1
        return parts, columns

    def _text(self, index: int, depth: int, comments: Sequence[Comment]) -> str:
        """A piece with the comments and the blank before it."""
        piece = self.pieces[index]
        text = close_text(piece.text, depth) if piece.kind == "TRIPLE" else piece.text
        before = " " if index and has_blank(self.pieces[index - 1], piece) else ""
        return before + "".join(f"{comment.text} " for comment in comments) + text if comments else before + text


def close_text(text: str, depth: int) -> str:
    """A text in three quotes with its last line indented, if that holds nothing but the quotes."""
    body = text.rstrip('"')
    lines, newline, last = body.rpartition("\n")
    return f"{lines}\n{' ' * (STEP * depth)}{text[len(body) :]}" if newline and not last.strip() else text


# What no blank stands before, and behind.
TIGHT_BEFORE = frozenset({",", ";", ")", "]", ".", "?."})
TIGHT_AFTER = frozenset({"(", "[", ".", "?.", "..."})
TIGHT_KINDS = frozenset({"CALL_OPEN", "INDEX_OPEN", "POSTFIX_INCREMENT", "NON_NULL", "OPTIONAL", "TYPE_OPEN"})
PREFIXES = frozenset({"!", "-", "+", "~"})
# Whose colon has a blank on both sides.
SPACED_COLON = frozenset({"conditional", "agent", "import_"})
# Whose parenthesis follows a name, or `>`, without a blank.
CALLED = frozenset(
    {"handler", "function", "method", "accessor", "type_method", "prompt_parameters", "granted_tools", "compose_names"}
    | {"new", "call", "optional_call"}
)
ANGLED = frozenset({"generic_type", "call", "new", "generics"})


def has_blank(before: Piece, piece: Piece) -> bool:
    """Whether a blank stands between two neighbours."""
    text, last = piece.text, before.text
    if text in TIGHT_BEFORE or last in TIGHT_AFTER or piece.kind in TIGHT_KINDS:
        return False
    if last == "{" and text == "}":
        return False
    if text == ":":
        return piece.rule in SPACED_COLON
    if last == ":":
        return before.rule != "permission"
    if text == "(" and piece.rule in CALLED:
        return before.kind == "FUNCTION"
    return not (_is_in_angles(before, piece) or _is_after_prefix(before, piece) or _is_star(before, piece))


def _is_in_angles(before: Piece, piece: Piece) -> bool:
    if piece.text == ">" and piece.rule in ANGLED:
        return True
    if before.text == "<" and before.rule in ANGLED:
        return True
    return piece.text == "<" and piece.rule in ANGLED and before.kind in ("NAME", "WORD", "STRING", "FUNCTION")


def _is_after_prefix(before: Piece, piece: Piece) -> bool:
    if before.kind == "INCREMENT":
        return True
    is_prefix = before.rule in ("prefix", "eval_number", "literal_type") and before.text in PREFIXES
    return is_prefix and not piece.text.startswith(before.text)


def _is_star(before: Piece, piece: Piece) -> bool:
    """Whether one of both is the mark of a generator."""
    if piece.kind == "STAR" and piece.rule == "function":
        return True
    return before.kind == "STAR" and before.rule == "method"


WIDTH = 120
# How many columns may follow brackets that are broken although they end before the line becomes too long.
MAX_TAIL_COLUMNS = 40
# Of places that are equally deep in brackets, the one that is taken first.
STATEMENT = 0
CONDITIONAL = 1
BRACKETS = 9
OPERATORS = {"??": 2, "||": 3, "&&": 4, "+": 5}


class Splitter:
    """Splits lines by what it adds to the breaks of a program."""

    def __init__(self, pieces: list[Piece], breaks: Breaks) -> None:
        self.pieces, self.breaks = pieces, breaks
        around = breaks.around
        # How many commas are directly in brackets, and in which brackets there are operators.
        self.commas = Counter(around[index] for index, piece in enumerate(pieces) if separates(piece))
        self.operated = {around[index] for index, piece in enumerate(pieces) if _rank_of(piece) is not None}

    def split(self, start: int, columns: Sequence[int]) -> bool:
        """Split a line that is too long at the outermost place where that helps; whether there was one.

        Args:
            start: the piece that begins the line.
            columns: where each of its pieces ends, at least up to the first that ends too far right.
        """
        over = next((number for number, column in enumerate(columns) if column > WIDTH), None)
        if over is None:
            return False
        places = (self._place(index, start, over, columns) for index in range(start, start + over + 1))
        found = min((place for place in places if place is not None), default=None)
        if found is None:
            return False
        _, rank, index = found
        steps = self.breaks.flat_steps(abs(index))
        if steps is not None:
            self.breaks.broken.add(steps)
        elif rank == BRACKETS:
            self.breaks.broken.add(abs(index))
        else:
            self.breaks.kept.update([index] if rank == STATEMENT else self._operators_like(index, start))
        return True

    def _place(self, index: int, start: int, over: int, columns: Sequence[int]) -> tuple[int, int, int] | None:
        """A place to split a line at; of several the least is taken: the outermost, loosest, of brackets the last."""
        piece, depth = self.pieces[index], self.breaks.depths[index]
        if piece.is_solid:
            return None
        if index > start and piece.anchor is not None and not self.breaks.is_joined(index):
            return depth, STATEMENT, index
        if piece.text in OPENERS:
            is_place = self._can_break(index) and self._helps(index, start, over, columns)
            return (depth, BRACKETS, -index) if is_place else None
        rank = _rank_of(piece)
        return (depth, rank, index) if rank is not None and index > start else None

    def _operators_like(self, index: int, start: int) -> list[int]:
        """All operators of a line that are split with one of them."""
        around, rank = self.breaks.around, _rank_of(self.pieces[index])
        found, at = [], start + 1
        while at < len(self.pieces) and not self.breaks.begins_line(at):
            if around[at] == around[index] and _rank_of(self.pieces[at]) == rank:
                found.append(at)
            at += 1
        return found

    def _can_break(self, opener: int) -> bool:
        piece = self.pieces[opener]
        if opener in self.breaks.broken or piece.partner is None or piece.partner == opener + 1:
            return False
        return self.commas[opener] > 0 or piece.text == "{" or opener in self.operated

    def _helps(self, opener: int, start: int, over: int, columns: Sequence[int]) -> bool:
        """Whether brackets reach to where the line is too long, or nearly so."""
        closer = (self.pieces[opener].partner or 0) - start
        return closer >= over or columns[-1] - columns[closer] <= MAX_TAIL_COLUMNS


def _rank_of(piece: Piece) -> int | None:
    """How loosely an operator binds that a line may be split at, the loosest first; None for all other pieces."""
    if piece.rule == "conditional":
        return CONDITIONAL if piece.text in ("?", ":") else None
    return OPERATORS.get(piece.text) if piece.rule in ("operation", "operator", "weak_operator") else None


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
