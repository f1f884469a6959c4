"""Texts and comments without an end to what of the code behind them probably belongs to them."""

from __future__ import annotations

import re

from koi_lang.source import Span

TRIPLE = "E0103"
QUOTED = "E0195"
TEMPLATE = "E0196"
COMMENT = "E0197"
QUOTE_INSIDE = "E0199"
# A line that ends a text in triple quotes: one of code rather than of prose.
CODE_LINE = re.compile(
    r"^[ \t]*(?:\}[ \t]*$|(?:private[ \t]+)?on[ \t]+\w+[ \t]*\(|(?:agent|role|skill|team|prompt)[ \t]+\w+[ \t]*[:({=])",
    re.MULTILINE,
)
LINE = re.compile(r"^(?P<indent>[ \t]*)\S", re.MULTILINE)


def open_text(code: str, text: str, place: Span, end: int) -> Span | None:
    """What is left out because of a text without an end; None for other problems.

    Args:
        code: of the problem.
        place: where the text begins.
        end: of the part that is read.
    """
    if code == TRIPLE:
        return Span(place.start, _prose_end(text, place.start, end))
    if code not in (QUOTED, TEMPLATE, COMMENT, QUOTE_INSIDE):
        return None
    line_end = text.find("\n", place.start, end)
    start = place.start
    if code == QUOTE_INSIDE:
        start = max(text.rfind(text[start], 0, start), 0)
    if code == TEMPLATE:
        start = max(start if (at := text.rfind("`", _line_start(text, start), start)) < 0 else at, 0)
    return Span(start, end if line_end < 0 else line_end)


def _prose_end(text: str, start: int, end: int) -> int:
    """Where a text in triple quotes ends: at a line that is indented no deeper, if the next one is; else at code."""
    first_end = text.find("\n", start, end)
    if first_end < 0:
        return end
    opener = LINE.match(text, _line_start(text, start))
    indent = len(opener["indent"]) if opener else 0
    lines = list(LINE.finditer(text, first_end, end))
    is_indented = bool(lines) and len(lines[0]["indent"]) > indent
    for line in lines:
        if (is_indented and len(line["indent"]) <= indent) or CODE_LINE.match(text, line.start()):
            return max(first_end, line.start() - 1)
    return end


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1
