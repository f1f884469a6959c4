"""Texts to vectors that say what they mean, as far as a short table of words knows; other words hardly count."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

CONCEPTS = (
    "condense shorter short shorten brief corto",
    "mistakes review errors wrong check",
    "picture draw paint boat image",
    "umbrella rain weather forecast lluvia",
)
OTHERS = 64
WORD = re.compile(r"\w+")


def meaning(text: str, common: float = 0.0) -> Sequence[float]:
    """The vector of a text: a number for each concept, and a few for all other words.

    Args:
        common: how much all texts have in common, as in models that put everything close together.
    """
    vector = [0.0] * (len(CONCEPTS) + OTHERS) + [common]
    for word in WORD.findall(text.lower()):
        known = [n for n, concept in enumerate(CONCEPTS) if word in concept.split()]
        for n in known or [len(CONCEPTS) + zlib.crc32(word.encode()) % OTHERS]:
            vector[n] += 1.0 if known else 0.2
    return vector


def close_together(text: str) -> Sequence[float]:
    """The same by a model that puts everything close together."""
    return meaning(text, common=3.0)
