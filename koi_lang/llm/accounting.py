"""Answers turned into what they took and cost: a ledger beside a model, and estimates where nobody counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from koi_lang.llm.layers import Layer, opened
from koi_lang.llm.messages import Adapter, Delta, Request, TextDelta, Usage
from koi_lang.llm.models import card_of, cost_usd

CHARACTERS_PER_TOKEN = 4
USUAL_OUTPUT_TOKENS = 4096
MOST_OUTPUT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Tally:
    """What some answers took.

    Attributes:
        requests: answers that came from a model, broken ones that had begun included.
        cached_tokens: those of `input_tokens` that the provider had read before.
        usd: what the answers with known prices cost.
        unpriced: requests whose price is not known; with any, `usd` is only the part that is known.
        estimated: requests whose tokens are a guess.
        replayed: answers that were kept from an earlier request; they count nowhere else.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    estimated: int = 0
    replayed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.usd + other.usd,
            self.unpriced + other.unpriced,
            self.estimated + other.estimated,
            self.replayed + other.replayed,
        )


class Ledger:
    """What was spent, by `provider/model`, in the order in which they first answered."""

    def __init__(self) -> None:
        self.models: dict[str, Tally] = {}

    @property
    def total(self) -> Tally:
        """All models together."""
        return sum(self.models.values(), Tally())

    def enter(self, model: str, usage: Usage, *, replayed: bool = False) -> None:
        """Add one answer of a model, named `provider/model`."""
        self.models[model] = self.models.get(model, Tally()) + _tally(model, usage, replayed=replayed)


def accounted(model: Adapter, ledger: Ledger) -> Adapter:
    """A model whose every answer is entered into a ledger and ends with a usage, estimated where it had none."""
    return _Accounted(model, ledger)


def usage_of(request: Request, characters: int, usage: Usage | None) -> Usage:
    """The usage a provider told, else an estimate from the request and the characters of the answer."""
    return usage or Usage(_input_tokens(request), _tokens(characters), estimated=True)


def worst_case(request: Request, model: str) -> tuple[int, float | None]:
    """The most tokens a request and its answer should take and what they would cost, to check before it is sent.

    The answer counts with `max_tokens`, else with the model's limit up to 8192, else with 4096 tokens. The price is
    None where it is not known.
    """
    known = min(card_of(model).output_tokens or USUAL_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS)
    usage = Usage(_input_tokens(request), known if request.max_tokens is None else request.max_tokens)
    return usage.input_tokens + usage.output_tokens, cost_usd(model, usage)


class _Accounted(Layer):
    def __init__(self, inner: Adapter, ledger: Ledger) -> None:
        super().__init__(inner)
        self._ledger = ledger

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        entry = _Entry(self._ledger, request, f"{self.provider}/{request.model or self.model}")
        try:
            async with opened(self.inner, request) as stream:
                async for delta in stream:
                    yield entry.take(delta)
        finally:
            entry.close()


@dataclass(slots=True)
class _Entry:
    """One answer on its way into a ledger; `characters` are those not entered yet."""

    ledger: Ledger
    request: Request
    model: str
    characters: int = 0

    def take(self, delta: Delta) -> Delta:
        """Count a piece, or enter the answer at its end, which is given a usage if it has none."""
        if isinstance(delta, TextDelta):
            self.characters += len(delta.text)
            return delta
        usage = usage_of(self.request, self.characters, delta.usage)
        self.ledger.enter(delta.answered_by or self.model, usage, replayed=delta.replayed)
        self.characters = 0
        return replace(delta, usage=usage)

    def close(self) -> None:
        """Enter what has no end: an answer that broke off or is no longer wanted is paid for all the same."""
        if self.characters:
            self.ledger.enter(self.model, usage_of(self.request, self.characters, None))


def _tally(model: str, usage: Usage, *, replayed: bool) -> Tally:
    if replayed:
        return Tally(replayed=1)
    usd = cost_usd(model, usage)
    return Tally(
        1,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usd or 0.0,
        unpriced=int(usd is None),
        estimated=int(usage.estimated),
    )


def _input_tokens(request: Request) -> int:
    return _tokens(len(request.system) + sum(len(message.text) for message in request.messages))


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
