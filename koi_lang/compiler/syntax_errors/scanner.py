"""Text of a program to words and marks with their brackets; understands programs that are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from koi_lang.source import Span

Kind = Literal["word", "number", "text", "triple", "regex", "address", "mark", "unclosed", "end"]

PIECE = re.compile(
    r"(?P<blank>[ \t\r\n\f\ufeff]+)|(?P<comment>//[^\n]*|/\*(?s:.)*?\*/)"
    r'|(?P<triple>"{6}(?!")|(?P<fence>"{3,}+)(?s:.)*?(?P=fence))'
    r"|(?P<text>\"(?!\"\")(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+')"
    r"|(?P<unclosed>\"{3,}|/\*|[\"'])"
    r"|(?P<address>mcp://[\w.\-]+/[\w/.\-]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+\b|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+\b)?\w*)"
    r"|(?P<word>(?:[\w$]++|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})++)"
    r"|(?P<mark>\.\.\.|===|!==|\*\*=|\?\?=|\|\|=|&&=|>>>|=>|->|:=|==|!=|<=|>=|<>|<<|>>|\|>|\|\||&&|\?\?|\?\.|\+\+|--"
    r"|\*\*|[-+*/%]=|(?s:.))",
    re.DOTALL,
)
REGEX = re.compile(r"/(?![*/])(?:[^/\\\n\[]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/[a-z]*")
# Not possessive as a whole: with a look-ahead inside, Python before 3.11.5 takes too much or too little.
TEMPLATE_TEXT = re.compile(r"(?:[^`\\$]++|\\.|\$(?!\{))*", re.DOTALL)
CLOSERS = {"(": ")", "[": "]", "{": "}", "${": "}", "`": "`"}
BEFORE_VALUE = frozenset(("return", "throw", "in", "of", "typeof", "await", "else", "case"))


class ScannedToken(NamedTuple):
    """A word, a literal or a mark; `fresh` says that it is the first on its line."""

    kind: Kind
    text: str
    span: Span
    fresh: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """The pieces of a text and what is known of its brackets, as indexes of pieces.

    Attributes:
        partners: the closer of every opener that has one.
        unclosed: openers without a closer.
        stray: closers without an opener.
    """

    pieces: Sequence[ScannedToken]
    partners: dict[int, int]
    unclosed: Sequence[int]
    stray: Sequence[int]


def scan(text: str, span: Span, last: int | None = None, ahead: int = 0) -> Scan:
    """Read a text from left to right in linear time; a literal that never ends takes the rest of it.

    Args:
        text: the whole source.
        span: the part of it that is read.
        last: where to stop reading, if not at its end.
        ahead: the end of the text behind the part, which is read, too; no literal of the part reaches into it.
    """
    scanner = _Scanner(text, span.end)
    at = span.start
    for end in (span.end, ahead):
        scanner.end = end
        while at < (end if last is None else min(last, end)):
            at = scanner.step(at)
    return Scan(scanner.pieces, scanner.partners, sorted(scanner.unclosed + scanner.waiting), scanner.stray)


def scan_until(text: str, start: int, stops: Sequence[int]) -> int | None:
    """The first of some offsets at which no bracket, text or comment is open; None if there is none.

    Args:
        stops: in order; what stands behind the last one is not looked at.
    """
    scanner, at = _Scanner(text, stops[-1]), start
    for stop in stops:
        while at < stop:
            at = scanner.step(at)
        if at == stop and not scanner.waiting and scanner.pieces[-1:] and scanner.pieces[-1].kind != "unclosed":
            return stop
    return None


class _Scanner:
    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.pieces: list[ScannedToken] = []
        self.waiting: list[int] = []
        self.partners: dict[int, int] = {}
        self.unclosed: list[int] = []
        self.stray: list[int] = []
        self.fresh = True

    def step(self, at: int) -> int:
        """Take the piece that begins at an offset; the offset after it."""
        match = PIECE.match(self.text, at, self.end)
        if match is None or match.lastgroup is None:
            raise AssertionError(f"no piece at {at}")
        found, kind = match[0], match.lastgroup
        if kind in ("blank", "comment"):
            self.fresh = self.fresh or "\n" in found
            return match.end()
        if kind == "unclosed":
            return self._take("unclosed", at, self.end)
        if kind != "mark":
            return self._take(kind, at, match.end())  # type: ignore[arg-type]
        return self._mark(found, at)

    def _take(self, kind: Kind, start: int, end: int) -> int:
        self.pieces.append(ScannedToken(kind, self.text[start:end], Span(start, end), self.fresh))
        self.fresh = False
        return end

    def _mark(self, mark: str, at: int) -> int:
        regex = REGEX.match(self.text, at, self.end) if mark in ("/", "/=") and self._is_value_next() else None
        if regex is not None:
            return self._take("regex", at, regex.end())
        index = len(self.pieces)
        end = self._take("mark", at, at + len(mark))
        if mark == "`" and self.waiting and self.pieces[self.waiting[-1]].text == "`":
            self.partners[self.waiting.pop()] = index
        elif mark in CLOSERS:
            self.waiting.append(index)
        elif mark in (")", "]", "}"):
            self._close(mark, index)
        return self._template(end)

    def _is_value_next(self) -> bool:
        if not self.pieces:
            return True
        last = self.pieces[-1]
        return last.text in BEFORE_VALUE if last.kind == "word" else last.kind == "mark" and last.text not in ")]}`"

    def _close(self, mark: str, index: int) -> None:
        """Pair a closer with the nearest opener it fits; openers in between have lost theirs."""
        for depth in range(len(self.waiting) - 1, -1, -1):
            opener = self.waiting[depth]
            if CLOSERS[self.pieces[opener].text] == mark:
                self.unclosed += self.waiting[depth + 1 :]
                del self.waiting[depth:]
                self.partners[opener] = index
                return
            if mark != "}" and self.pieces[opener].text in ("{", "${") and self._is_line_between(opener, index):
                break
        self.stray.append(index)

    def _is_line_between(self, opener: int, closer: int) -> bool:
        return self.text.find("\n", self.pieces[opener].span.start, self.pieces[closer].span.start) >= 0

    def _template(self, at: int) -> int:
        """Inside backticks, pass over the text and take the `${` behind it."""
        if not self.waiting or self.pieces[self.waiting[-1]].text != "`":
            return at
        match = TEMPLATE_TEXT.match(self.text, at, self.end)
        end = match.end() if match else at
        if not self.text.startswith("${", end) or end >= self.end:
            return end
        self.waiting.append(len(self.pieces))
        return self._take("mark", end, end + 2)
