"""Quotes, objects, references and values in a text replaced by marks, so that patterns see one word for each."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from koi_lang.llm.rehearsal.literals import Reference, read_literal
from koi_lang.llm.rehearsal.values import VALUE

# Noncharacters, as in the marks for values; a playbook that is read has none of its own.
OPEN, CLOSE = "\ufdd2", "\ufdd3"
MARK = rf"{OPEN}\d+{CLOSE}"
CLOSING_QUOTES = {'"': '"', "“": "”", "«": "»", "`": "`", "'": "'"}
MAX_DEPTH = 32
BRACKETS = {"{": "}", "[": "]"}
_REFERENCE = re.compile(rf"\{{\{{([^{{}}]+)\}}\}}|\$\{{([^{{}}]+)\}}|<([A-Za-z_][\w .'-]*)>|({VALUE})")
_LIST = re.compile(r"\[\s*[\"'\d{\[\]\ufdd0]")

Kind: TypeAlias = Literal["text", "data", "reference"]


@dataclass(frozen=True, slots=True)
class QuotedPiece:
    """The content of one mark: a quoted text, an object or list, or words in braces for a value."""

    kind: Kind
    source: str
    value: Any


@dataclass(frozen=True, slots=True)
class Masked:
    """A text with marks, and their contents.

    Attributes:
        ends: behind each mark, where it ends in this text and where its piece ends in the original.
    """

    text: str
    pieces: tuple[QuotedPiece, ...]
    ends: tuple[tuple[int, int], ...] = ()

    def original_offset(self, at: int) -> int:
        """Where in the original text an offset in this one is that is not inside of a mark."""
        behind = bisect_right(self.ends, at, key=lambda ends: ends[0]) - 1
        masked_end, end = self.ends[behind] if behind >= 0 else (0, 0)
        return end + at - masked_end


def mask(text: str) -> Masked:
    """Replace each outermost quote, object, list and reference by a mark."""
    pieces: list[QuotedPiece] = []
    parts: list[str] = []
    ends: list[tuple[int, int]] = []
    length = at = 0
    while at < len(text):
        piece = _piece_at(text, at)
        if piece is None:
            parts.append(text[at])
            at += 1
            length += 1
            continue
        parts.append(f"{OPEN}{len(pieces)}{CLOSE}")
        pieces.append(piece)
        at += len(piece.source)
        length += len(parts[-1])
        ends.append((length, at))
    return Masked("".join(parts), tuple(pieces), tuple(ends))


def unmask(text: str, pieces: tuple[QuotedPiece, ...]) -> str:
    """The text as it was written."""
    return re.sub(f"{OPEN}(\\d+){CLOSE}", lambda found: pieces[int(found[1])].source, text)


def piece_of(text: str, pieces: tuple[QuotedPiece, ...]) -> QuotedPiece | None:
    """The piece a text consists of, None when it is anything but one mark."""
    found = re.fullmatch(f"\\s*{OPEN}(\\d+){CLOSE}\\s*", text)
    return pieces[int(found[1])] if found else None


def _piece_at(text: str, at: int) -> QuotedPiece | None:
    first = text[at]
    if found := _REFERENCE.match(text, at):
        return QuotedPiece("reference", found[0], Reference(next(filter(None, found.groups())).strip()))
    if first in CLOSING_QUOTES:
        return _quote_at(text, at)
    if first == "{" or (first == "[" and _LIST.match(text, at)):
        return _literal(text, at)
    return None


def _quote_at(text: str, at: int) -> QuotedPiece | None:
    end = _closing_quote(text, at)
    if end is None or end == at + 1:
        return None
    return QuotedPiece("text", text[at : end + 1], text[at + 1 : end].replace('\\"', '"').replace("\\n", "\n"))


def _closing_quote(text: str, at: int) -> int | None:
    quote = text[at]
    if quote == "'" and at and text[at - 1].isalnum():
        return None  # an apostrophe
    end = text.find(CLOSING_QUOTES[quote], at + 1)
    while end > 0 and (text[end - 1] == "\\" or (quote == "'" and text[end + 1 : end + 2].isalnum())):
        end = text.find(CLOSING_QUOTES[quote], end + 1)
    return None if end < 0 or "\n\n" in text[at:end] else end


def _literal(text: str, at: int) -> QuotedPiece | None:
    end = _closing_bracket(text, at)
    if end is None:
        return None
    source = text[at : end + 1]
    try:
        return QuotedPiece("data", source, read_literal(source))
    except ValueError:
        return None


def _closing_bracket(text: str, at: int) -> int | None:
    """Where the bracket at `at` closes, None when it does not or the nesting is deeper than anybody writes."""
    expected: list[str] = []
    while at < len(text) and len(expected) <= MAX_DEPTH:
        char = text[at]
        if char == '"':
            at = _closing_quote(text, at) or at
        elif char in BRACKETS:
            expected.append(BRACKETS[char])
        elif expected and char == expected[-1]:
            expected.pop()
            if not expected:
                return at
        at += 1
    return None
