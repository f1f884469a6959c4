"""The comment above a declaration, or behind a field, which describes it."""

from __future__ import annotations

import re

from koi_lang.source import Span

# A comment that ends where the declaration begins, on lines of its own; of `//` several in a row.
ABOVE = re.compile(
    r"(?:^|\n)[ \t]*(?:/\*\*?(?P<block>(?:[^*]|\*(?!/))*+)\*/|(?P<lines>//[^\n]*(?:\n[ \t]*//[^\n]*)*))[ \t]*\n[ \t]*\Z"
)
BEHIND = re.compile(r"[ \t]*[,;]?[ \t]*(?P<said>//[^\n]*|/\*(?:[^*\n]|\*(?!/))*+\*/)[ \t]*(?=\n|\Z)")
MARKS = re.compile(r"^[ \t]*(?://+|\*)[ \t]?", re.MULTILINE)
# Characters before a declaration that are looked at.
MAX_CHARS = 2000


def doc_comment(text: str, start: int) -> str:
    """What the comment right above a place says, in one line; empty for none."""
    found = ABOVE.search(text[max(0, start - MAX_CHARS) : start])
    if found is None:
        return ""
    said = found["block"] if found["block"] is not None else found["lines"]
    return _in_one_line(said)


def comment_of_field(text: str, span: Span) -> str:
    """What the comment above a field says, or the one that ends its line; in one line, empty for none."""
    behind = BEHIND.match(text, span.end)
    return doc_comment(text, span.start) or ("" if behind is None else _in_one_line(behind["said"].strip("/*")))


def _in_one_line(comment: str) -> str:
    return " ".join(MARKS.sub("", comment).split())
