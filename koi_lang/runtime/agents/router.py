"""An intent in free words to the offers that answer it best: words first, then likeness of spelling."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

WORD = re.compile(r"[^\W\d_]+|\d+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
THRESHOLD = 0.35
# Words that say nothing about what is wanted, in English and Spanish.
EMPTY = frozenset(
    "a an and for from in into is it of on or the this to with please do que de la el los las un una "
    "y o en para con por al del".split()
)


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be asked for: an event of a member, with what is said about it."""

    key: str
    event: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """An offer with how well it answers, from 0 to 1."""

    offer: Offer
    score: float


def rank(intent: str, offers: Sequence[Offer], *, limit: int = 3) -> list[Match]:
    """Order offers by how well they answer an intent, best first.

    Args:
        intent: what is wanted, a name or a sentence.
        offers: candidates in declaration order.
        limit: most matches to return.

    Returns:
        At most `limit` matches of at least 0.35; equal scores keep declaration order. The score is the cosine of
        word vectors in which rare words count more (inverse document frequency), or of letter triples where that is
        higher; words of the event's name count twice.
    """
    documents = [_words(f"{offer.event} {offer.event} {offer.key} {offer.description}") for offer in offers]
    wanted = _words(intent)
    weights = _weights(documents)
    scores = [
        max(_cosine(wanted, document, weights), _cosine(_triples(intent), _triples(offer.event), {}))
        for document, offer in zip(documents, offers, strict=True)
    ]
    matches = [Match(offer, score) for offer, score in zip(offers, scores, strict=True) if score >= THRESHOLD]
    return sorted(matches, key=lambda match: -match.score)[:limit]


def _words(text: str) -> Counter[str]:
    """The words of a text by their stems, camel case split."""
    found = WORD.findall(CAMEL.sub(" ", text).lower().replace("_", " "))
    return Counter(_stem(word) for word in found if word not in EMPTY and len(word) > 1)


def _stem(word: str) -> str:
    """A word without its most common endings, so that `reviews` and `reviewing` meet `review`."""
    for ending in ("ations", "ation", "ings", "ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _triples(text: str) -> Counter[str]:
    letters = "".join(character for character in text.lower() if character.isalnum())
    return Counter(letters[at : at + 3] for at in range(max(1, len(letters) - 2)))


def _weights(documents: Sequence[Counter[str]]) -> dict[str, float]:
    count = Counter(word for document in documents for word in document)
    return {word: 1 + math.log(len(documents) / seen) for word, seen in count.items()}


def _cosine(one: Counter[str], other: Counter[str], weights: dict[str, float]) -> float:
    def length(vector: Counter[str]) -> float:
        return math.sqrt(sum((count * weights.get(word, 1.0)) ** 2 for word, count in vector.items()))

    shared = sum(count * other[word] * weights.get(word, 1.0) ** 2 for word, count in one.items())
    size = length(one) * length(other)
    return shared / size if size else 0.0
