"""Bounds of values, as JSON Schema writes them: the check, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from koi_lang.errors import PatternError
from koi_lang.js.bounded_regex import BoundedRegex, SearchTime
from koi_lang.js.conversions import is_number

Schema = Mapping[str, Any]
# The keywords of the lowest and the highest value or length by the type that has them, and what is counted.
_OF_NUMBERS = ("minimum", "maximum", "")
RANGES = {
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "string": ("minLength", "maxLength", "character"),
    "array": ("minItems", "maxItems", "item"),
}
KEYWORDS = frozenset({"pattern", *(name for low, high, _ in RANGES.values() for name in (low, high))})


class Range(NamedTuple):
    """The lowest and the highest number or length, None for an open end; `counted` is the unit of a length."""

    low: int | float | None = None
    high: int | float | None = None
    counted: str = ""

    def __bool__(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def words(self) -> str:
        """`from 0 to 1`, `1 to 80 characters`, `at least 1 item`."""
        last = self.low if self.high is None else self.high
        if self.low == self.high:
            ends = f"exactly {last}"
        elif self.low is None or self.high is None:
            ends = f"at {'most' if self.low is None else 'least'} {last}"
        else:
            ends = f"{self.low} to {self.high}" if self.counted else f"from {self.low} to {self.high}"
        return f"{ends} {self.counted}{'' if last == 1 else 's'}" if self.counted else ends

    @property
    def text(self) -> str:
        """The range as programs write it: `0..1`, `1..`."""
        return "..".join("" if end is None else str(end) for end in (self.low, self.high))


UNBOUNDED = Range()


def is_within(value: Any, schema: Schema, time_left: SearchTime) -> bool:
    """Whether a value keeps the bounds of its type. A pattern that takes longer than the time left fits nothing."""
    size = value if is_number(value) else len(value) if isinstance(value, str | list) else 0
    bounds = range_of(schema)
    if not ((bounds.low is None or size >= bounds.low) and (bounds.high is None or size <= bounds.high)):
        return False
    if "pattern" not in schema or not isinstance(value, str):
        return True
    try:
        return BoundedRegex(schema["pattern"], time_left=time_left).is_in(value)
    except PatternError:
        return False


def range_of(schema: Schema) -> Range:
    """The range of a number, of the length of a text, or of that of a list."""
    for low, high, counted in RANGES.values() if not KEYWORDS.isdisjoint(schema) else ():
        if low in schema or high in schema:
            return Range(schema.get(low), schema.get(high), counted)
    return UNBOUNDED


def bounds_words(schema: Schema) -> str:
    """The bounds of a value: `from 0 to 1`, `1 to 80 characters, matching /^[a-z]+$/`; empty for none."""
    matching = f"matching /{schema['pattern']}/" if "pattern" in schema else ""
    bounds = range_of(schema)
    return ", ".join(filter(None, (bounds.words if bounds else "", matching)))


def expected_words(schema: Schema) -> str:
    """The bounds behind the words for a type: ` from 0 to 1`, ` of 1 to 80 characters matching /^[a-z]+$/`."""
    words = bounds_words(schema).replace(", matching", " matching", 1)
    return f"{' ' if words.startswith(('from', 'matching')) else ' of '}{words}" if words else ""


def bounds_text(schema: Schema) -> str:
    """The bounds as programs write them behind a type: ` in 1..80 matching /^[a-z]+$/`; empty for none."""
    bounds = range_of(schema)
    ends = f" in {bounds.text}" if bounds else ""
    return f"{ends} matching /{schema['pattern']}/" if "pattern" in schema else ends
