"""Pages of Markdown to their sentences, and how long these are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.pages import FENCE

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Headings, rows of tables, and pictures that stand alone are no sentences.
HEADING_ROW_OR_PICTURE = re.compile(r"#|\||!\[")
ITEM = re.compile(r"(?:[*+-]|\d+\.) ")
CODE = re.compile(r"(``?)(?!`).+?\1")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r'(?<=[.?!])[")*_]*\s+(?=["(*_]*[A-Z0-9])')
WORD = re.compile(r"[\w$%][\w'’.,:/-]*")


class Length(NamedTuple):
    """How long the sentences of a page are, in words: the mean is rounded up."""

    mean: int
    longest: int


def sentences(page: str) -> list[str]:
    """The sentences of a page, without code blocks, tables and headings; code within a sentence is one word."""
    texts = (LINK.sub(r"\1", CODE.sub("Code", text)) for text in paragraphs(page))
    return [sentence for text in texts for sentence in END.split(text) if WORD.search(sentence)]


def paragraphs(page: str) -> Iterator[str]:
    """The paragraphs of a page, and the items of its lists, each as one line."""
    lines: list[str] = []
    for line in [*map(str.strip, COMMENT.sub("", FENCE.sub("\n\n", page)).splitlines()), ""]:
        item = ITEM.match(line)
        if item or not line or HEADING_ROW_OR_PICTURE.match(line):
            yield " ".join(lines)
            lines = [line[item.end() :]] if item else []
        else:
            lines.append(line)


def measure(found: Sequence[str]) -> Length:
    """The length of sentences."""
    words = [len(WORD.findall(sentence)) for sentence in found] or [0]
    return Length(-(-sum(words) // len(words)), max(words))
