"""Texts from outside on one line each, so that nothing in them looks like a line of somebody else."""

from __future__ import annotations

import json
import re

# All that somebody, or a model, may take for the end of a line.
BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def flatten_lines(text: str) -> str:
    r"""A text on one line, with `\\n` where lines ended."""
    return BREAK.sub(r"\\n", text)


def escape_breaks(text: str) -> str:
    """JSON on one line, with all line separators escaped."""
    return BREAK.sub(lambda found: "".join(f"\\u{ord(sign):04x}" for sign in found[0]), text)


def quote_line(text: str) -> str:
    """A text on one line, in quotation marks that it cannot end itself."""
    return flatten_lines(json.dumps(text, ensure_ascii=False))


def mark_lines(text: str) -> str:
    """A text of several lines, each marked as one that is quoted."""
    return "\n".join(f"> {line}" for line in BREAK.split(text))
