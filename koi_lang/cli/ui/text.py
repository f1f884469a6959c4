"""What programs and models wrote to text that does a terminal no harm, on lines that are no wider than it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from koi_lang import settings
from koi_lang.cli.ui.colours import chosen_colours
from koi_lang.lazy import lazy_module
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.model_calls.images import medium, replace_images
from koi_lang.system import text_width
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")

# Characters that take one column each, so that nobody has to be asked how wide they are.
NARROW = re.compile(r"[ -~¡-˿…→●✓✗]*")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
HARMFUL = re.compile(
    rf"({COLOUR.pattern})|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
PLAIN = "\x1b[0m"
SURROGATE = re.compile(r"[\ud800-\udfff]")
BLANKS = re.compile(r"\s+")
# The parts of a report: its first line, the marks under a line of the source, and what frames that.
HEAD = re.compile(r"\A(error|warning)(: )")
MARKS = re.compile(r"^( *\| +)(\^.*)", re.MULTILINE)
FRAME = re.compile(r"^ *(?:-->|\d* \||= (?:cause|help):)", re.MULTILINE)
# Units of limits in seconds, the largest first.
PERIODS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
# Of a value that is told in a line.
MAX_CHARS = 400
# Of what is asked about, in characters: about what a small window shows.
MAX_SEEN = 1000
MAX_ITEMS = 12
MAX_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Theme:
    """How lines about a run look: the marks they have, and whether they have colours."""

    at_work: str = "●"
    done: str = "✓"
    failed: str = "✗"
    gives: str = "→"
    more: str = "…"
    colour: bool = False

    def paint(self, text: str, code: int) -> str:
        """A text in a colour, or weaker (2), where there are colours."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


ASCII = Theme("*", "+", "x", "->", "...")
RED = 31
GREEN = 32
YELLOW = 33
CYAN = 36
WEAK = 2


def look_of(stream: TextIO) -> Theme:
    """The marks that a stream can write, and whether it has colours."""
    colour = has_colours(stream)
    plain = Theme(colour=colour)
    try:
        f"{plain.at_work}{plain.done}{plain.failed}{plain.gives}{plain.more}".encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return Theme(ASCII.at_work, ASCII.done, ASCII.failed, ASCII.gives, ASCII.more, colour)
    return plain


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal that a stream writes to, as it is now."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    usual = shutil.get_terminal_size() if not (columns and rows) else (columns, rows)
    return columns or usual[0], rows or usual[1]


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours to a stream: `--color` says so, else the environment, else whether it is a terminal."""
    when = chosen_colours()
    if when != "auto":
        return when == "always"
    if settings.variable("NO_COLOR") is not None:
        return False
    if any(settings.variable(name) not in (None, "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and settings.variable("TERM") != "dumb"


# ---------------------------------------------------------------- reports


def colour_report(report: str) -> str:
    """A problem as it is told to people, with colours: its kind, the marks under the source, weaker what frames it."""
    head = HEAD.match(report)
    if head is None:
        return report
    code = RED if head[1] == "error" else YELLOW
    report = MARKS.sub(lambda found: found[1] + _in_colour(found[2], code), report)
    report = FRAME.sub(lambda found: _in_colour(found[0], WEAK), report)
    return HEAD.sub(lambda found: _in_colour(found[1], code) + found[2], report)


def _in_colour(text: str, code: int) -> str:
    return Theme(colour=True).paint(text, code)


# ---------------------------------------------------------------- harmless text


def harmless(text: str) -> str:
    """What a program prints without what would steer the terminal; line breaks, tabs and colours stay.

    Colours end with the text: they could make what is written next invisible, such as the question of an approval.
    """
    if not HARMFUL.search(text):
        return text
    kept = HARMFUL.sub(r"\1", text)
    colours = [found[0] for found in COLOUR.finditer(kept)]
    return kept + PLAIN if colours and colours[-1] not in (PLAIN, "\x1b[m") else kept


def whole(asked: str) -> str:
    """What a person is to allow, with how long it is where its beginning may be out of sight."""
    return asked if len(asked) <= MAX_SEEN else f"{asked}\n(all of these {len(asked):,} characters)"


def writable(text: str, stream: TextIO) -> str:
    r"""A text as a stream can write it: what its encoding lacks becomes a question mark, half a character `\ufffd`."""
    encoding = stream.encoding or "utf-8"
    return SURROGATE.sub("\ufffd", text).encode(encoding, "replace").decode(encoding)


def one_line(text: str) -> str:
    """A text on one line, without control characters."""
    return BLANKS.sub(" ", clean(text)).strip()


def brief(value: Any, depth: int = 0) -> str:
    """A value on one line, for people: no quotes, little nesting, only its beginning, no fields that tell nothing."""
    value = medium(value) or value
    if isinstance(value, str):
        return one_line(value[:MAX_CHARS])
    if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
        telling = ((key, item) for key, item in value.items() if item is not True and item not in (None, ""))
        return ", ".join(f"{one_line(str(key))}: {brief(item, depth + 1)}" for key, item in islice(telling, MAX_ITEMS))
    if isinstance(value, list) and value and depth < MAX_DEPTH:
        return f"[{', '.join(brief(item, depth + 1) for item in value[:MAX_ITEMS])}]"
    return one_line(json.dumps(replace_images(value), default=str, ensure_ascii=False)[:MAX_CHARS])


# ---------------------------------------------------------------- columns


def width(text: str) -> int:
    """How many columns a text without control characters takes."""
    return len(text) if NARROW.fullmatch(text) else text_width.width(text)


def fit_text(text: str, columns: int, more: str) -> str:
    """The beginning of a text in at most some columns, with a mark where something is missing."""
    if width(text) <= columns:
        return text
    room = columns - len(more)
    return more[: max(columns, 0)] if room < 1 else _clip_text(text, room).rstrip() + more


def _clip_text(text: str, columns: int) -> str:
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


def count_text(number: int, noun: str) -> str:
    """A number of things: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cost_text(usage: UsageTotals, unknown: str = "unknown") -> str:
    """What something cost, as far as that is known."""
    if usage.unpriced and not usage.usd:
        return unknown
    return f"${usage.usd:.4f}{' or more' if usage.unpriced else ''}"


def usage_text(usage: UsageTotals) -> str:
    """What models took, in a few words."""
    return f"{usage.tokens:,} tokens, {cost_text(usage, 'cost unknown')}"


def duration(seconds: float) -> str:
    """A time for people: `7s`, `2m05s`, `1h02m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole // 60 % 60:02}m"


def period_text(seconds: float) -> str:
    """A limit in the largest unit that it is a whole number of, as `30 days`, `5 minutes` or `1.5 seconds`."""
    for unit_s, unit in PERIODS:
        if seconds >= unit_s and seconds % unit_s == 0:
            return count_text(int(seconds // unit_s), unit)
    return f"{seconds:,g} seconds"


def heard_when(*, at_end: bool, at_work: bool) -> str:
    """When what a person says is heard: by the playbook that is at work, else by the next one, if there is one."""
    if not at_work:
        return "will be heard by the next playbook; none is at work"
    return f"will be heard {'at the end' if at_end else 'before the next answer of the model'}"
