"""The worst-case usage of any request, over all models that may answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from koi_lang.llm.messages import Usage
from koi_lang.llm.models import card_of, cost_usd
from koi_lang.llm.usage import Candidate, least


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The most that something takes.

    Attributes:
        tokens: read and written together; infinite where it is not known how much a model reads.
        usd: infinite where that, or a price, is not known.
        models: who may take it.
        unpriced: those of them whose price is not known.
        unread: those of whom it is not known how much they read.
    """

    tokens: float = 0.0
    usd: float = 0.0
    models: frozenset[str] = frozenset()
    unpriced: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    def beside(self, other: WorstCase) -> WorstCase:
        """The most where one or the other is asked."""
        return WorstCase(
            max(self.tokens, other.tokens),
            max(self.usd, other.usd),
            self.models | other.models,
            self.unpriced | other.unpriced,
            self.unread | other.unread,
        )


NOTHING = WorstCase()


def worst_case(candidates: Sequence[Candidate], context_tokens: int | None = None) -> WorstCase:
    """The worst-case usage of a request and its answer, over all candidate models.

    A window that is read full is the most, since nobody knows what an agent is given.

    Args:
        context_tokens: how much a model reads of which no card says it.
    """
    worst = NOTHING
    for candidate in candidates:
        worst = worst.beside(_worst_case(candidate, context_tokens))
    return worst


def _worst_case(candidate: Candidate, context_tokens: int | None) -> WorstCase:
    name = candidate.priced_name
    card, model = card_of(name), frozenset({name})
    context = candidate.context_tokens or card.context_tokens or context_tokens
    if context is None:
        return WorstCase(inf, inf, model, unpriced=_without_price(name), unread=model)
    answer = min(least(candidate.max_tokens, card.output_tokens) or context, context)
    read = min(card.input_tokens or context, context)
    # The window is shared: as long an answer as there may be, or as much to read.
    shares = [(min(read, context - answer), answer), (read, min(answer, context - read))]
    costs = [cost_usd(name, Usage(given, made, stored_tokens=given)) for given, made in shares]
    usd = max((cost for cost in costs if cost is not None), default=inf)
    return WorstCase(max(map(sum, shares)), usd, model, _without_price(name))


def dearest_token_usd(models: frozenset[str]) -> float:
    """The most that one token costs of some models, read or written; infinite where a price is not known."""
    costs = [_dearest(model) for model in models]
    return max((inf if cost is None else cost for cost in costs), default=0.0)


def _dearest(model: str) -> float | None:
    """The price of a token in the longest possible request."""
    most = card_of(model).context_tokens or 1
    read, written = cost_usd(model, Usage(most, 0, stored_tokens=most)), cost_usd(model, Usage(most, most))
    whole = cost_usd(model, Usage(most, 0))
    if read is None or written is None or whole is None:
        return None
    return max(read, written - whole) / most


def _without_price(model: str) -> frozenset[str]:
    return frozenset({model}) if card_of(model).prices_usd is None else frozenset()
