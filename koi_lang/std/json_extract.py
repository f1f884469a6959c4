"""A text with JSON somewhere in it, as models like to write, to the value."""

from __future__ import annotations

import json
import re
from typing import Any

from koi_lang.js import json_text
from koi_lang.js.errors import ErrorValue
from koi_lang.js.undefined import undefined

FENCED = re.compile(r"```(?:json5?|JSON)?[ \t]*\n(.*?)```", re.DOTALL)
START = re.compile(r"[{\[]")
MAX_STARTS = 200
DECODER = json.JSONDecoder()


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
