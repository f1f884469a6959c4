"""Pieces to lines: indentation, blank lines, comments, and brackets that are broken where a line would be too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from koi_lang.compiler.formatter.breaks import PROGRAM, Breaks, separates
from koi_lang.compiler.formatter.comments import TrailingComment, align, indent_comment, last_width, sort_comments
from koi_lang.compiler.formatter.pieces import CLOSERS, OPENERS, Comment, Piece
from koi_lang.compiler.formatter.spacing import has_blank

WIDTH = 120
STEP = 2
# How many columns may follow brackets that are broken although they end before the line becomes too long.
LONGEST_TAIL = 40
# Where a line is split first, of places that are equally deep in brackets.
STATEMENT, CONDITIONAL, BRACKETS = 0, 1, 9
OPERATORS = {"??": 2, "||": 3, "&&": 4, "+": 5}


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
        around = self.breaks.around
        self.operated = {around[index] for index, piece in enumerate(pieces) if rank_of(piece) is not None}
        self.commas = Counter(around[index] for index, piece in enumerate(pieces) if separates(piece))

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
            end = self._end_of_line(start)
            text, columns = self._measure(start, end, depth, leading)
            if not self._split(start, columns):
                break
        self.depths[start:end] = [depth] * (end - start)
        self.lines.append(text)
        return end

    def _end_of_line(self, start: int) -> int:
        end = start + 1
        while end < len(self.pieces) and not self.breaks.begins_line(end):
            end += 1
        return end

    def _measure(self, start: int, end: int, depth: int, leading: Sequence[Comment]) -> tuple[str, list[int]]:
        """The text of pieces on one line, and for each the column that it ends at, in its own first line."""
        parts = [" " * (STEP * depth)]
        column, columns = STEP * depth, list[int]()
        for index in range(start, end):
            piece = self.pieces[index]
            before = "" if index == start or not has_blank(self.pieces[index - 1], piece) else " "
            comments = leading if index == start else piece.comments
            if comments:
                before += "".join(f"{comment.text} " for comment in comments)
            text = before + (_close_text(piece.text, depth) if piece.kind == "TRIPLE" else piece.text)
            parts.append(text)
            first, newline, _ = text.partition("\n")
            columns.append(column + len(first))
            column = last_width(text) if newline else columns[-1]
        return "".join(parts), columns

    def _split(self, start: int, columns: list[int]) -> bool:
        """Split a line that is too long at the outermost place where that helps; whether there was one."""
        over = next((number for number, column in enumerate(columns) if column > WIDTH), None)
        if over is None:
            return False
        found = [
            place for index in range(start, start + over + 1) if (place := self._place(index, start, over, columns))
        ]
        if not found:
            return False
        _, rank, index = min(found)
        steps = self.breaks.flat_steps(abs(index))
        if steps is not None:
            self.breaks.broken.add(steps)
        elif rank == BRACKETS:
            self.breaks.broken.add(abs(index))
        else:
            self.breaks.kept.update(self._places_like(abs(index), start, start + len(columns)))
        return True

    def _place(self, index: int, start: int, over: int, columns: list[int]) -> tuple[int, int, int] | None:
        """A place to split a line at; of several the least is taken: the outermost, loosest, of brackets the last."""
        piece, depth = self.pieces[index], self.breaks.depths[index]
        if piece.is_solid:
            return None
        if index > start and piece.anchor is not None and not self.breaks.is_joined(index):
            return depth, STATEMENT, index
        if piece.text in OPENERS:
            is_place = self._can_break(index) and self._helps(index, start, over, columns)
            return (depth, BRACKETS, -index) if is_place else None
        rank = rank_of(piece)
        return (depth, rank, index) if rank is not None and index > start else None

    def _places_like(self, index: int, start: int, end: int) -> list[int]:
        """All operators of a line that are split with one of them, or the beginning of the statement at the index."""
        rank = rank_of(self.pieces[index])
        if self.pieces[index].anchor is not None or rank is None:
            return [index]
        around = self.breaks.around
        return [
            each
            for each in range(start + 1, end)
            if around[each] == around[index] and rank_of(self.pieces[each]) == rank
        ]

    def _can_break(self, opener: int) -> bool:
        piece = self.pieces[opener]
        if opener in self.breaks.broken or piece.partner is None or piece.partner == opener + 1:
            return False
        return self.commas[opener] > 0 or piece.text == "{" or opener in self.operated

    def _helps(self, opener: int, start: int, over: int, columns: list[int]) -> bool:
        closer = (self.pieces[opener].partner or 0) - start
        return closer >= over or columns[-1] - columns[closer] <= LONGEST_TAIL


def rank_of(piece: Piece) -> int | None:
    """How loosely an operator binds that a line may be split at, the loosest first; None for all other pieces."""
    if piece.rule == "conditional":
        return CONDITIONAL if piece.text in ("?", ":") else None
    return OPERATORS.get(piece.text) if piece.rule in ("operation", "operator", "weak_operator") else None


def _close_text(text: str, depth: int) -> str:
    """A text in three quotes with its last line indented, if that holds nothing but the quotes."""
    body = text.rstrip('"')
    lines, newline, last = body.rpartition("\n")
    return f"{lines}\n{' ' * (STEP * depth)}{text[len(body) :]}" if newline and not last.strip() else text
