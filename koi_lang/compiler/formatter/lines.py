"""Pieces to lines: their indentation, and the blank lines and comments between them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from koi_lang.compiler.formatter.breaks import PROGRAM, Breaks
from koi_lang.compiler.formatter.comments import TrailingComment, align, indent_comment, last_width, sort_comments
from koi_lang.compiler.formatter.pieces import CLOSERS, Comment, Piece
from koi_lang.compiler.formatter.spacing import has_blank
from koi_lang.compiler.formatter.splitting import LONGEST_TAIL, WIDTH, Splitter

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
            parts, columns = self._measure(start, depth, leading, WIDTH + LONGEST_TAIL)
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
