"""The similarity of texts, their differences, and JSON that stands somewhere in them, as models like to write it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches, unified_diff
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js import json_text
from koi_lang.js.errors import ErrorValue
from koi_lang.js.undefined import undefined

# Comparing letter by letter takes time that grows with the square of the length.
MAX_LETTERS, MAX_CHARS = 5_000, 200_000
FENCED = re.compile(r"```(?:json5?|JSON)?[ \t]*\n(.*?)```", re.DOTALL)
START = re.compile(r"[{\[]")
MAX_STARTS = 200
DECODER = json.JSONDecoder()


def ratio(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1."""
    _require_short(one, other, most=MAX_LETTERS)
    return round(SequenceMatcher(None, one, other, autojunk=False).ratio(), 4)


def closest(text: str, choices: Sequence[Any], least: float) -> str | None:
    """The choice that is most like a text, letter case aside; None where none is alike enough."""
    known = {str(choice).lower(): str(choice) for choice in reversed(choices)}
    found = get_close_matches(text.lower(), known, n=1, cutoff=least)
    return known[found[0]] if found else None


def difference(before: str, after: str) -> list[str]:
    """The changed lines: `-` for removed, `+` for added ones, with two lines around them."""
    _require_short(before, after, most=MAX_CHARS)
    found = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))
    return found[2:]


def _require_short(*texts: str, most: int) -> None:
    if any(len(text) > most for text in texts):
        raise AgentError(f"texts of more than {most:,} characters are not compared like this")


def extract_json(text: str) -> Any:
    """The first object or list in a text, those in fences first; undefined where there is none."""
    for piece in [*(match[1] for match in FENCED.finditer(text)), text]:
        for count, start in enumerate(START.finditer(piece)):
            value = _at(piece, start.start())
            if value is not undefined:
                return value
            if count >= MAX_STARTS:
                break
    return undefined


def _at(text: str, start: int) -> Any:
    try:
        _, end = DECODER.raw_decode(text, start)
        return json_text.parse(text[start:end])
    except (ValueError, RecursionError, ErrorValue):
        return undefined
