"""The comment above a declaration, which describes it."""

from __future__ import annotations

import re

# A comment that ends where the declaration begins, on lines of its own; of `//` several in a row.
ABOVE = re.compile(
    r"(?:^|\n)[ \t]*(?:/\*\*?(?P<block>(?:[^*]|\*(?!/))*+)\*/|(?P<lines>//[^\n]*(?:\n[ \t]*//[^\n]*)*))[ \t]*\n[ \t]*\Z"
)
MARKS = re.compile(r"^[ \t]*(?://+|\*)[ \t]?", re.MULTILINE)
# Characters before a declaration that are looked at.
MAX_CHARS = 2000


def doc_comment(text: str, start: int) -> str:
    """What the comment right above a place says, in one line; empty for none."""
    found = ABOVE.search(text[max(0, start - MAX_CHARS) : start])
    if found is None:
        return ""
    said = found["block"] if found["block"] is not None else found["lines"]
    return " ".join(MARKS.sub("", said).split())
