"""Texts that servers write to texts that can stand in a prompt or before a person without doing harm there."""

from __future__ import annotations

import json
import re

from koi_lang.runtime.host import MAX_CLIPPED_CHARS, clip_text

FENCE = re.compile(r"`{2,}|~{3,}")


def plain(text: str, most: int) -> str:
    """The beginning of a text of several lines, without characters that would steer a terminal."""
    return clip_text("".join(c if c.isprintable() or c in "\n\t" else " " for c in text[: most + 1]), most)


def one_line(text: str, most: int = MAX_CLIPPED_CHARS) -> str:
    """A text on one line, unable to hide, move or enclose the text around it."""
    beginning = text[: 4 * most + 100]
    visible = "".join(c if c.isprintable() else " " for c in beginning)
    return clip_text(" ".join(FENCE.sub("`", visible).split()), most)


def quote_text(text: str, most: int = MAX_CLIPPED_CHARS) -> str:
    """A text in quotation marks that it cannot end itself; empty for an empty one."""
    line = one_line(text, most)
    return json.dumps(line, ensure_ascii=False) if line else ""
