"""What a model had written when its provider refused to hand it out, as the calls of tools that it stands for.

Groq answers so where a model writes a call in the words that it was trained with, or calls what it was not offered.
"""

from __future__ import annotations

import json
import re

# `<function=look>{…}</function>`, `<function=look={…}</function>`, `look{…}</function>`
OPENING = re.compile(r"\s*(?:<function[=/])?(?P<name>[A-Za-z_][\w.:-]{0,127})[\s=>(]*(?=\{)")
CLOSING = re.compile(r"[\s)>]*(?:</?function>)?[\s;,]*")


def calls_in(text: str) -> list[tuple[str, str]]:
    """Names and arguments of the calls that a text consists of; none where there is anything else in it."""
    calls, at, decoder = list[tuple[str, str]](), 0, json.JSONDecoder()
    while found := OPENING.match(text, at):
        try:
            _, end = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            return []
        calls.append((found["name"], text[found.end() : end]))
        closing = CLOSING.match(text, end)
        at = end if closing is None else closing.end()
    return [] if text[at:].strip() else calls
