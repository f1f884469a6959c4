"""Positions of the protocol to character offsets of a text, and back; nothing else knows how columns are counted."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lsprotocol import types

from koi_lang.source import Span

LINE_END = re.compile(r"\r\n|\n|\r")
# How many columns a text has, by the encoding that was agreed with the client.
WIDTHS: dict[str, Callable[[str], int]] = {
    types.PositionEncodingKind.Utf8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    types.PositionEncodingKind.Utf16: lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    types.PositionEncodingKind.Utf32: len,
}


@dataclass(frozen=True)
class PositionMap:
    """The lines of one text as the protocol counts them: from 0, ended by LF, CR LF or CR."""

    text: str
    encoding: str = types.PositionEncodingKind.Utf16

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    @cached_property
    def _is_ascii(self) -> bool:
        return self.text.isascii()

    def offset(self, position: types.Position) -> int:
        """The character at a position; past the end of a line its end, past the last line the end of the text.

        A column within a character, such as between the halves of a UTF-16 pair, is the beginning of that character.
        """
        line = max(0, position.line)
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        row = self.text[start : self._end_of(line)]
        column = max(0, position.character)
        if self._is_ascii or row.isascii():
            return start + min(column, len(row))
        return start + self._characters(row, column)

    def _characters(self, row: str, column: int) -> int:
        """How many characters of a line stand before a column."""
        width, used = WIDTHS[self.encoding], 0
        for index, character in enumerate(row):
            used += width(character)
            if used > column:
                return index
        return len(row)

    def _end_of(self, line: int) -> int:
        """Where the characters of a line end, before its line end."""
        start, end = self._starts[line], (*self._starts[line + 1 : line + 2], len(self.text))[0]
        return start + len(self.text[start:end].rstrip("\r\n"))

    def position(self, offset: int) -> types.Position:
        """The position of a character, or of the end of the text; line ends belong to their line."""
        line = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[line] : offset]
        return types.Position(line, len(before) if self._is_ascii else WIDTHS[self.encoding](before))

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def span(self, range: types.Range) -> Span:
        """The span of a range; an end before its start counts as the start."""
        start = self.offset(range.start)
        return Span(start, max(start, self.offset(range.end)))
