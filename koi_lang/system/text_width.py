"""Texts to how many columns of a terminal they take, and to texts that take no more of them, or just as many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from koi_lang.errors import AgentError
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import wcwidth
else:
    wcwidth = lazy_module("wcwidth")

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return wcwidth.width(clean(text))


def clean(text: str) -> str:
    """A text without sequences that move the cursor, colour the terminal, or turn the direction of writing."""
    return CONTROL.sub(" ", SEQUENCE.sub("", text.replace("\r\n", "\n")))


def pad_text(text: str, columns: int, side: str) -> str:
    """A text with blanks up to some columns: behind it (`left`), before it (`right`) or around it (`center`)."""
    missing = max(int(columns) - width(text), 0)
    if side not in ("left", "right", "center"):
        raise AgentError(f"`{side}` is no side", help="Use left, right or center.")
    before = {"left": 0, "right": missing, "center": missing // 2}[side]
    return " " * before + text + " " * (missing - before)


def wrap_text(text: str, columns: int) -> list[str]:
    """The lines of a text, each at most some columns wide; words that are longer are cut."""
    lines = clean(text).split("\n")
    return [part for line in lines for part in (wcwidth.wrap(line, max(int(columns), 2)) or [""])]


def clip_text(text: str, columns: int) -> str:
    """The beginning of a text that takes at most some columns, with `…` where something is missing."""
    plain = clean(text).replace("\n", " ")
    if width(plain) <= columns:
        return plain
    return wcwidth.clip(plain, 0, max(int(columns) - 1, 0)).rstrip() + "…"
