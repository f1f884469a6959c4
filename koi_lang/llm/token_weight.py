"""A text to about how many tokens it takes."""

from __future__ import annotations

import string
from functools import lru_cache

CHARACTERS_PER_TOKEN = 4
# Longest text, in characters, whose weight is remembered.
SHORT = 10_000
# Digits and marks, of which half as many make a token.
DENSE = (string.digits + string.punctuation).encode()


def weight(text: str) -> float:
    """About how many tokens a text takes, not rounded: that of two texts is that of both together.

    Four letters or blanks of ASCII count as a token, and two digits or marks; of other letters two (Greek, Cyrillic,
    Arabic, with accents). A character that takes three bytes (Chinese, Japanese, Korean, signs) counts as 1.25, one
    that takes four (emoji) as 2. Words with few of these may still take more, so what models count is learnt from.
    """
    return _weight_of_short(text) if len(text) <= SHORT else _weight(text)


@lru_cache(2048)
def _weight_of_short(text: str) -> float:
    # Prompts and what was said before are weighed again and again.
    return _weight(text)


def _weight(text: str) -> float:
    ascii = text.encode("ascii", "ignore")
    dense = len(ascii) - len(ascii.translate(None, DENSE))
    tokens = (len(ascii) + dense) / CHARACTERS_PER_TOKEN
    if len(ascii) < len(text):
        others = len(text) - len(ascii)
        tokens += 0.75 * (len(text.encode("utf-8", "surrogatepass")) - len(ascii)) - others
    return tokens
