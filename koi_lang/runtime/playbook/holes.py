r"""Holes in texts of actions: `${…}` and `{{…}}`, and the backslashes in front of them.

One backslash has the hole stand there as it is written, two stand for a backslash: `\${x}` is the text `${x}`, `\\${x}`
a backslash and a value, `\\\${x}` the text `\${x}`. Elsewhere a backslash is a character like any other;
in code also in front of a hole that has no value there.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from koi_lang.system.interpolation import HOLE, OPENING

# Holes of answers to earlier versions, which hold no braces.
EARLIER_HOLE = re.compile(r"\$\{([^{}]+)\}|\{\{([^{}]+)\}\}")
# Forms of templates (blocks, comments, parts, trimmed blanks) and of shells (`${!name}`, `${#name}`).
FOREIGN = re.compile(r"\$\{(?:#|!\w+(?:\[[@*]\]|[@*])?\})|\{\{(?:[#^>!&~]|-\s|/(?!.*/))")
# Values that mean nothing but themselves in a command, by how they stand there: as a word of their own; within a text
# in quotation marks, which a program may read once more, such as a command or a query; all of an argument in such
# marks, where a plan takes what was recorded: with blanks, with `=` or with both; and all of one that a model writes.
PLAIN_IN_COMMANDS = {
    "word": re.compile(r"(?!-)[\w@+:,./-]+"),
    "number": re.compile(r"\d+(?:\.\d+)?", re.ASCII),
    "inner": re.compile(r"(?!-)(?!.*--)[\w@+:,./-]+"),
    "words": re.compile(r"(?!-)[\w@+:,./ -]*"),
    "pair": re.compile(r"(?!-)[\w@+=:,./-]*"),
    "pairs": re.compile(r"(?!-)[\w@+=:,./ -]*"),
    "'": re.compile(r"(?!-)[^'\0]*"),
    '"': re.compile(r'(?!-)[^"$`\\\0]*'),
}
# The kinds that recorded values may have, narrow ones first, by how they stand in a command.
RECORDED_KINDS = {"word": ("word",), "inner": ("number", "inner"), "pairs": ("word", "words", "pair", "pairs")}
# What stands around a hole that is a whole argument.
ARGUMENT = re.compile(r"""[\s=](["'])\1[\s;|&<>)]""")
# Of a value in a message about it.
MAX_SHOWN_CHARS = 80
CODE = re.compile(r"(`{3,})(?s:.*?)(?:\1|\Z)|`[^`]*(?:`|\Z)")


def spelled_in(hole: re.Match[str]) -> str:
    """The expression in a hole."""
    return str(hole[1] or hole[2]).strip()


def is_literal(hole: re.Match[str]) -> bool:
    """Whether a hole stands for nothing but itself."""
    return _backslashes(hole) % 2 == 1


def is_foreign(hole: re.Match[str]) -> bool:
    """Whether a hole has a form of another language, which says nothing here."""
    return FOREIGN.match(hole[0]) is not None


def all_holes(text: str) -> Iterator[re.Match[str]]:
    """The holes of a text, and those in them."""
    at = 0
    while (hole := HOLE.search(text, at)) is not None:
        yield hole
        at = hole.start() + OPENING


def fill_holes(
    text: str,
    write: Callable[[re.Match[str]], str | None],
    form: re.Pattern[str] = HOLE,
    *,
    is_own: Callable[[re.Match[str]], bool] = lambda hole: True,
) -> str:
    """A text with the values of its holes; of a hole that stays as written, those of the holes in it.

    Args:
        is_own: whether backslashes in front of a hole say how it is read; elsewhere they are those of a program.
    """
    pieces, done = list[str](), 0
    while (hole := form.search(text, done)) is not None:
        count = _backslashes(hole)
        if count and not is_own(hole):
            pieces.append(text[done : hole.start() + OPENING])
            done = hole.start() + OPENING
            continue
        written = None if count % 2 else write(hole)
        pieces += [text[done : hole.start() - count], "\\" * (count // 2)]
        pieces.append(hole[0][:OPENING] if written is None else written)
        done = hole.start() + OPENING if written is None else hole.end()
    return "".join([*pieces, text[done:]])


class CodeInText:
    """The parts of a text that stand in backticks: code, whose holes may be its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._until = 0

    @cached_property
    def _ranges(self) -> tuple[list[int], list[int]]:
        found = [match.span() for match in CODE.finditer(self._text)]
        return [start for start, _ in found], [end for _, end in found]

    def holds(self, hole: re.Match[str]) -> bool:
        """Whether a hole stands in code, or in a hole of code; holes are asked about in the order of the text."""
        start = hole.start()
        if start < self._until:
            return True
        if "`" not in self._text:
            return False
        starts, ends = self._ranges
        place = bisect_right(starts, start) - 1
        if place < 0 or start >= ends[place]:
            return False
        self._until = hole.end()
        return True


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def holes_in_command(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The holes of a command, each with how it stands there: a key of `PLAIN_IN_COMMANDS`.

    One that is a whole argument has the sign around it; in several lines, which may hold a document, and in the shell
    of Windows it is `pairs`.
    """
    quote, place = "", 0
    has_more = not set("\\`$").isdisjoint(HOLE.sub("", text))
    is_exact = "\n" not in text.strip() and sys.platform != "win32"
    for hole in HOLE.finditer(text):
        for sign in text[place : hole.start()]:
            quote = sign if not quote and sign in "\"'" else "" if sign == quote else quote
        place = hole.end()
        around = f"{text[: hole.start()][-2:]:>2}{text[place : place + 2]:<2}"
        is_argument = ARGUMENT.fullmatch(around) is not None and around[1] == quote
        if has_more or (quote and not is_argument):
            yield hole, "inner"
        else:
            yield hole, "word" if not quote else quote if is_exact else "pairs"


def recorded_kind(standing: str, values: Sequence[Any]) -> str:
    """The narrowest key of `PLAIN_IN_COMMANDS` for values that were recorded at one place of a command.

    Args:
        standing: how they stand there, as `holes_in_command` says.
    """
    kinds = RECORDED_KINDS.get(standing, RECORDED_KINDS["pairs"])
    return next((kind for kind in kinds if not any(why_not_plain(each, kind) for each in values)), kinds[-1])


def why_not_plain(value: Any, kind: str) -> str:
    """A clause that says what a shell may make of a value in a command; empty where it is a plain word there.

    Args:
        kind: how it stands there, a key of `PLAIN_IN_COMMANDS`.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if PLAIN_IN_COMMANDS[kind].fullmatch(text):
        return ""
    shown = json.dumps(text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…", ensure_ascii=False)
    return f"{shown}, which a shell may read as more than a word"


def _backslashes(hole: re.Match[str]) -> int:
    text, start = hole.string, hole.start()
    while start and text[start - 1] == "\\":
        start -= 1
    return hole.start() - start
