"""An intent in free words to the offers that answer it best: by meaning, by words, by likeness of spelling."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from operator import mul
from typing import TypeAlias

from koi_lang.diagnostics import SLIP_IN_FIVE

WORD = re.compile(r"[^\W\d_]+|\d+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Scores below this are no match. In words: seven tenths of the intent where nothing of the event's name is in it. In
# meaning: found by trial with a small model, English and Spanish; of 32 paraphrases 3 % went to another event than
# theirs, of 23 intents that meant nobody 4 % to somebody.
THRESHOLD = 0.35
# Words that say nothing about what is wanted, in English and Spanish.
EMPTY = frozenset(
    "a an and are as at be by can could do does for from go have help how i in into is it let like make me my need now"
    " of on or our out please so some tell that the their them then there these this those to us want we what when"
    " where which who will with would you your"
    " al con cual cuando de del el ella en es esta este favor haz la las le lo los me mi necesito para por puedes que"
    " quiero se su sus te tu un una unos y o".split()
)
ENDINGS = tuple(
    sorted(
        "ations ation ators ator ating ated ates ate ions ion ings ing ers er ed es s ment ments ize izes ized izing"
        " izer ise ises ised ising iser yze yzes yzed yzing yzer yse yses ysed ysing ysis yst y"
        " aciones acion ciones cion adores ador ando iendo ado ido amos ar er ir en an as os a o e"
        " izar iza izan izado izacion isis".split(),
        key=len,
        reverse=True,
    )
)
# Shorter ones, such as `us` of `uses`, stand for too much.
MIN_STEM_CHARS = 3
# Texts to vectors of length 1, one for each.
Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
MAX_TEXT_CHARS = 1000
# Sentences that have nothing to do with each other: how near a model puts an intent to these is no nearness at all.
UNRELATED = (
    "The train leaves at nine.",
    "She painted the fence green.",
    "Water boils at a hundred degrees.",
    "The cat sleeps on the roof.",
    "They lost the match in extra time.",
)
# Letters with a stroke, which Unicode does not take apart.
STROKES = str.maketrans("łøđħ", "lodh")


@dataclass(frozen=True, slots=True)
class Route:
    """An event of a member, with its description, as a target of intents."""

    key: str
    event: str
    description: str = ""

    @property
    def name(self) -> str:
        """How it is called among others."""
        return f"{self.key}::{self.event}"

    @property
    def text(self) -> str:
        """Its description as one text of at most 1000 characters."""
        event = CAMEL.sub(" ", self.event).replace("_", " ").lower()
        return f"{event}: {self.description}"[:MAX_TEXT_CHARS] if self.description else event


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """An offer with how well it answers, from 0 to 1."""

    offer: Route
    score: float


def rank(
    intent: str, offers: Sequence[Route], *, limit: int | None = 3, min_score: float = THRESHOLD
) -> list[RouteMatch]:
    """Order offers by how well they answer an intent, best first.

    Args:
        intent: what is wanted, a name or a sentence.
        offers: candidates in declaration order.
        limit: most matches to return; None for all.
        min_score: of a match.

    Returns:
        At most `limit` matches of at least `min_score`; equal scores keep declaration order. An offer matches when
        most of what the intent says is found in its name or description, or when all words of its event's name are
        found in the intent and make up a good part of it, or when the intent is its name with a slip. Rare words count
        more.
    """
    documents = [set(stems_of(f"{offer.event} {offer.key} {offer.description}")) for offer in offers]
    weights = _weights(documents)
    wanted = set(stems_of(intent))
    matches = [
        RouteMatch(offer, max(_by_words(wanted, offer, document, weights), _by_spelling(intent, offer)))
        for offer, document in zip(offers, documents, strict=True)
    ]
    found = [match for match in matches if match.score >= min_score]
    return sorted(found, key=lambda match: -match.score)[:limit]


@dataclass(frozen=True, slots=True)
class MeaningScale:
    """The prefixes of an embedding model, and the least similarity of an intent and a matching offer.

    Attributes:
        min_score: of a match.
        query_prefix: stands before an intent.
        passage_prefix: stands before what an intent is compared with.
    """

    min_score: float = THRESHOLD
    query_prefix: str = ""
    passage_prefix: str = ""


DEFAULT_SCALE = MeaningScale()


@dataclass(frozen=True, slots=True)
class MeaningScores:
    """How near a model for embeddings puts offers to an intent.

    Attributes:
        by_name: from below 0 to 1, by the names of the offers; empty where the model could not be asked.
        min_score: of a match.
        error: why there are none.
    """

    by_name: Mapping[str, float]
    min_score: float
    error: str = ""


async def rank_by_meaning(
    intent: str, offers: Sequence[Route], *, embed: Embed, limit: int | None = 3, scale: MeaningScale = DEFAULT_SCALE
) -> list[RouteMatch]:
    """Order offers by how near their meaning is to that of an intent, nearest first.

    Models differ in how near they put what has nothing in common, so a score is how much of the way from there to the
    same meaning an offer has come.

    Args:
        intent: what is wanted; not empty.
        offers: candidates in declaration order.
        limit: most matches to return; None for all.

    Returns:
        At most `limit` matches of at least `scale.min_score`, 0.35 as a rule; equal scores keep declaration order.

    Raises:
        Exception: as `embed` does.
    """
    wanted, *others = await embed(texts(intent, offers, scale))
    near = [_cosine(wanted, other) for other in others]
    unrelated, nearness = min(sum(near[: len(UNRELATED)]) / len(UNRELATED), 0.99), near[len(UNRELATED) :]
    scores = [min((each - unrelated) / (1 - unrelated), 1.0) for each in nearness]
    found = [RouteMatch(offer, score) for offer, score in zip(offers, scores, strict=True) if score >= scale.min_score]
    return sorted(found, key=lambda match: -match.score)[:limit]


def texts(intent: str, offers: Sequence[Route], scale: MeaningScale = DEFAULT_SCALE) -> list[str]:
    """The texts to embed for a ranking: the intent, the unrelated sentences, the offers."""
    passages = (*UNRELATED, *(offer.text for offer in offers))
    return [scale.query_prefix + intent[:MAX_TEXT_CHARS], *(scale.passage_prefix + each for each in passages)]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two vectors of length 1."""
    return math.fsum(map(mul, one, other))


def _by_words(wanted: set[str], offer: Route, document: set[str], weights: Mapping[str, float]) -> float:
    """The mean of how much of the intent is in the offer and how much of the event's name is in the intent."""
    named = _share(set(stems_of(offer.event)), wanted, weights)
    answered = _share(wanted, document, weights)
    if answered > 0.5 or (named == 1 and answered >= 1 / 3):
        return (named + answered) / 2
    return 0.0


def _share(words: set[str], among: set[str], weights: Mapping[str, float]) -> float:
    """How much of some words is among others, from 0 to 1."""
    unknown = max(weights.values(), default=1.0)
    weight = {word: weights.get(word, unknown) for word in words}
    return sum(weight[word] for word in words & among) / sum(weight.values()) if weight else 0.0


def _weights(documents: Sequence[set[str]]) -> dict[str, float]:
    count = Counter(word for document in documents for word in document)
    return {word: 1 + math.log(len(documents) / seen) for word, seen in count.items()}


def _by_spelling(intent: str, offer: Route) -> float:
    """How alike an intent and the name of an event are, letter by letter; 0 unless one is a slip of the other."""
    alike = SequenceMatcher(None, _letters(intent), _letters(offer.event)).ratio()
    return alike if alike >= SLIP_IN_FIVE else 0.0


def stems_of(text: str, empty: Set[str] = EMPTY) -> list[str]:
    """The stems of the words of a text that mean something, camel case split, without accents.

    Args:
        empty: words that mean nothing, in small letters and without accents.
    """
    found = WORD.findall(_plain(CAMEL.sub(" ", text)).replace("_", " "))
    return [_stem(word) for word in found if word not in empty and len(word) > 1]


@lru_cache(20_000)
def _stem(word: str) -> str:
    """A word without its most common endings, so that `reviews` and `reviewing` meet `review`."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
            return word.removesuffix(ending)
    return word


def _letters(text: str) -> str:
    return "".join(character for character in _plain(text) if character.isalnum())


def _plain(text: str) -> str:
    """Lower case, without accents; `ß` is `ss`, as in capitals."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(STROKES))
    return "".join(c for c in plain if not unicodedata.combining(c))
