"""What programs and models wrote to text that does a terminal no harm, on lines that are no wider than it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from koi_lang import settings
from koi_lang.std.tables import clean

# Characters that take one column each, so that nobody has to be asked how wide they are.
NARROW = re.compile(r"[ -~¡-˿…→●✓✗]*")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
HARMFUL = re.compile(
    rf"({COLOUR.pattern})|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
SURROGATE = re.compile(r"[\ud800-\udfff]")
BLANKS = re.compile(r"\s+")
# Of a value that is told in a line.
LONGEST = 400
MOST_ITEMS = 12
DEEPEST = 2


@dataclass(frozen=True, slots=True)
class Look:
    """How lines about a run look: the marks they have, and whether they have colours."""

    at_work: str = "●"
    done: str = "✓"
    failed: str = "✗"
    gives: str = "→"
    more: str = "…"
    colour: bool = False

    def painted(self, text: str, code: int) -> str:
        """A text in a colour, or weaker (2), where there are colours."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


ASCII = Look("*", "+", "x", "->", "...")
RED, GREEN, CYAN, WEAK = 31, 32, 36, 2


def look_of(stream: TextIO) -> Look:
    """The marks that a stream can write; colours unless NO_COLOR is set."""
    colour = settings.variable("NO_COLOR") is None
    plain = Look(colour=colour)
    try:
        f"{plain.at_work}{plain.done}{plain.failed}{plain.gives}{plain.more}".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return Look(ASCII.at_work, ASCII.done, ASCII.failed, ASCII.gives, ASCII.more, colour)
    return plain


# ---------------------------------------------------------------- harmless text


def harmless(text: str) -> str:
    """What a program prints without what would steer the terminal; line breaks, tabs and colours stay."""
    return HARMFUL.sub(r"\1", text) if HARMFUL.search(text) else text


def writable(text: str, stream: TextIO) -> str:
    """A text as a stream can write it: what its encoding lacks becomes a question mark, half a character `\\ufffd`."""
    encoding = stream.encoding or "ascii"
    return SURROGATE.sub("\ufffd", text).encode(encoding, "replace").decode(encoding)


def one_line(text: str) -> str:
    """A text on one line, without control characters."""
    return BLANKS.sub(" ", clean(text)).strip()


def brief(value: Any, depth: int = 0) -> str:
    """A value on one line, for people: no quotes, little nesting, only its beginning, no fields that tell nothing."""
    if isinstance(value, str):
        return one_line(value[:LONGEST])
    if isinstance(value, Mapping) and value and depth < DEEPEST:
        telling = ((key, item) for key, item in value.items() if item is not True and item not in (None, ""))
        return ", ".join(f"{one_line(str(key))}: {brief(item, depth + 1)}" for key, item in islice(telling, MOST_ITEMS))
    if isinstance(value, list) and value and depth < DEEPEST:
        return f"[{', '.join(brief(item, depth + 1) for item in value[:MOST_ITEMS])}]"
    return one_line(json.dumps(value, default=str, ensure_ascii=False)[:LONGEST])


# ---------------------------------------------------------------- columns


def width(text: str) -> int:
    """How many columns a text without control characters takes."""
    if NARROW.fullmatch(text):
        return len(text)
    import wcwidth

    return int(wcwidth.width(text))


def fitted(text: str, columns: int, more: str) -> str:
    """The beginning of a text in at most some columns, with a mark where something is missing."""
    if width(text) <= columns:
        return text
    room = columns - len(more)
    return more[: max(columns, 0)] if room < 1 else _clipped(text, room).rstrip() + more


def _clipped(text: str, columns: int) -> str:
    cut = text[:columns]
    while width(cut) > columns:
        cut = cut[:-1]
    return cut


def ending(text: str, columns: int, more: str) -> str:
    """The end of a text in at most some columns, with a mark where something is missing."""
    if width(text) <= columns:
        return text
    room = columns - len(more)
    if room < 1:
        return ""
    cut = text[-room:]
    while width(cut) > room:
        cut = cut[1:]
    return more + cut


def duration(seconds: float) -> str:
    """A time for people: `7s`, `2m05s`, `1h02m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole // 60 % 60:02}m"
