"""Brackets without a partner to where the layout shows that they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from koi_lang.compiler.syntax_errors.scanner import CLOSERS, Scan, ScannedToken
from koi_lang.source import Span

CLOSING = frozenset((")", "]", "}", "`"))


def balance(found: Scan, text: str, end: int) -> Scan:
    """The tokens of a text with empty ones where brackets end that nothing closes, so that every opener has a partner.

    Such a bracket ends before the first line behind it that is indented no deeper than its own, else at the end. A line
    that begins with a bracket ends none where it would be a declaration. A bracket whose partner stands further left
    than its line has taken that of another.
    """
    if not found.unclosed and not found.stray:
        return found
    return _Balancing(found, text, end).run()


class _Bracket(NamedTuple):
    """A bracket that is open; `is_suspicious` where its partner is missing, or may be that of another one."""

    opener: int
    start: int
    closer: str
    indent: int
    is_suspicious: bool


class _Balancing:
    def __init__(self, found: Scan, text: str, end: int) -> None:
        self.found, self.text, self.end = found, text, end
        self.openers = found.partners.keys() | set(found.unclosed)
        self.indents = _indents(found.pieces, text)
        self.pieces: list[ScannedToken] = []
        self.partners: dict[int, int] = {}
        self.open: list[_Bracket] = []

    def run(self) -> Scan:
        """Go through all tokens once."""
        for number, piece in enumerate(self.found.pieces):
            if piece.fresh:
                self._end_left(number, piece)
            if self._closes(number, piece):
                self._close(piece)
                continue
            self.pieces.append(piece)
            if number in self.openers:
                closer, is_suspicious = CLOSERS[piece.text], self._is_suspicious(number)
                self.open.append(
                    _Bracket(len(self.pieces) - 1, piece.span.start, closer, self.indents[number], is_suspicious)
                )
        while self.open:
            self._end_at(self.end)
        return Scan(self.pieces, self.partners, (), ())

    def _open(self, number: int, piece: ScannedToken) -> None:
        opener, is_suspicious = len(self.pieces) - 1, self._is_suspicious(number)
        self.open.append(_Bracket(opener, piece.span.start, CLOSERS[piece.text], self.indents[number], is_suspicious))

    def _closes(self, number: int, piece: ScannedToken) -> bool:
        """Whether a token closes a bracket, or would if there were one."""
        return piece.kind == "mark" and piece.text in CLOSING and number not in self.openers

    def _is_suspicious(self, number: int) -> bool:
        partner = self.found.partners.get(number)
        if partner is None:
            return True
        is_brace = self.found.pieces[number].text == "{" and self.found.pieces[partner].fresh
        return is_brace and self.indents[partner] < self.indents[number]

    def _end_left(self, number: int, piece: ScannedToken) -> None:
        """End the brackets that a line which is indented no deeper shows to be over."""
        outermost = self.open[0] if self.open else None
        # No declaration begins with a bracket: such a line is inside of what is open, however it is indented.
        if outermost and outermost.is_suspicious and outermost.indent >= self.indents[number] and piece.text in CLOSERS:
            return
        offset = max(self._last_end(), self.text.rfind("\n", 0, piece.span.start))
        while self.open and self.open[-1].is_suspicious and self.open[-1].indent >= self.indents[number]:
            has_partner = self.open[-1].indent == self.indents[number] and self.open[-1].closer == piece.text
            if has_partner:
                return
            self._end_at(offset)

    def _close(self, piece: ScannedToken) -> None:
        """Pair a closer with the nearest opener that it fits, if all those in between have no partner."""
        for bracket in reversed(self.open):
            if bracket.closer == piece.text:
                while self.open[-1] is not bracket:
                    self._end_at(self._last_end())
                self.partners[self.open.pop().opener] = len(self.pieces)
                break
            is_elsewhere = self.text.find("\n", bracket.start, piece.span.start) >= 0
            if not bracket.is_suspicious or (is_elsewhere and piece.text != "}" and bracket.closer == "}"):
                break
        self.pieces.append(piece)

    def _end_at(self, offset: int) -> None:
        bracket = self.open.pop()
        self.partners[bracket.opener] = len(self.pieces)
        self.pieces.append(ScannedToken("mark", bracket.closer, Span(offset, offset), False))

    def _last_end(self) -> int:
        return self.pieces[-1].span.end if self.pieces else 0


def _indents(pieces: Sequence[ScannedToken], text: str) -> list[int]:
    """For every token how far the first one of its line is indented."""
    indents, indent = [], 0
    for piece in pieces:
        if piece.fresh:
            indent = piece.span.start - text.rfind("\n", 0, piece.span.start) - 1
        indents.append(indent)
    return indents
