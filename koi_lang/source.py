"""Text of a program and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# Programs of Koi, and workflow scripts, which are read as programs.
PROGRAM_SUFFIX = ".koi"
SCRIPT_SUFFIXES = (".js", ".mjs")


def is_program(path: str) -> bool:
    """Whether a path names a file that runs as a program."""
    return path.endswith((PROGRAM_SUFFIX, *SCRIPT_SUFFIXES))


class Span(NamedTuple):
    """A piece of one source: character offsets, `end` is exclusive."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)

    def encloses(self, other: Span) -> bool:
        """Whether the other span lies within this one, which it may be."""
        return self.start <= other.start and other.end <= self.end


class Position(NamedTuple):
    """A place as people count it: line and column from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """One file's text; `path` is how messages name it."""

    path: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line; lines end with LF."""
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    @cached_property
    def is_ascii(self) -> bool:
        """Whether a character is always one UTF-8 byte."""
        return self.text.isascii()

    def position(self, offset: int) -> Position:
        """Line and column of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def python_position(self, offset: int) -> tuple[int, int]:
        """Line from 1 and column from 0 as Python syntax trees count: columns are UTF-8 bytes."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if self.is_ascii:
            return line, offset - start
        return line, len(self.text[start:offset].encode("utf-8", "surrogatepass"))

    def first_line(self, span: Span) -> Span:
        """A span without the lines after its first one; it is not empty."""
        end = self.text.find("\n", *span)
        return span if end < 0 else Span(span.start, max(end, span.start + 1))

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its line end; empty past the last one."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


def decode(data: bytes, path: str) -> Source:
    """Bytes of a file to its text; a byte-order mark is dropped.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    return Source(path, data.decode("utf-8-sig"))
