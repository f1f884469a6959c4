"""Usage and cost of requests and answers, estimated where they are not reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf

from koi_lang.llm.images import TOKENS
from koi_lang.llm.messages import Message, Request, Usage
from koi_lang.llm.models import card_of, cost_usd, priced_name
from koi_lang.llm.token_weight import weight
from koi_lang.llm.transcript import Messages

TOKENS_PER_MESSAGE = 4
# Of an answer that is given no limit: of models that think before they write, of others, of models without a card.
DEFAULT_THINKING_TOKENS = 32_768
DEFAULT_ANSWER_TOKENS = 8192
UNKNOWN_ANSWER_TOKENS = 4096
# Sums of prices differ by less.
MIN_USD = 1e-12


def usage_of(request: Request, written: float, usage: Usage | None) -> Usage:
    """The reported usage, else an estimate from the request and the `weight` of the answer."""
    output_tokens = ceil(written) if request.max_tokens is None else min(ceil(written), request.max_tokens)
    return usage or Usage(tokens_of(request.messages, request.system), output_tokens, estimated=True)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may answer a request.

    Attributes:
        max_tokens: the most that it is told to answer with; None where it is not told.
        provider: of the model; empty where that is not known.
        context_tokens: how much its server says that it reads; None where it does not say so.
    """

    model: str
    max_tokens: int | None = None
    provider: str = ""
    context_tokens: int | None = None

    @property
    def priced_name(self) -> str:
        """The name by which its cost is looked up."""
        return priced_name(self.provider, self.model)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The worst-case usage of a request and its answer, computed from the request.

    Attributes:
        answer_tokens: of an answer that nothing makes shorter.
        least_answer_tokens: with fewer for its answer, the request is not worth sending.
        answer_usd: what each of them costs, 0 where that is not known.
        needs_limit: whether nothing but the request keeps the models to `answer_tokens`.
        unpriced: a model whose price is not known; empty without one.
        models: who may answer it, and `has_images` whether there are images to look at.
    """

    input_tokens: int
    answer_tokens: int
    least_answer_tokens: int
    input_usd: float = 0.0
    answer_usd: float = 0.0
    needs_limit: bool = False
    unpriced: str = ""
    models: tuple[str, ...] = ()
    has_images: bool = False

    def times(self, factor: float) -> Estimate:
        """The estimate for models that count a multiple of the input."""
        if factor == 1:
            return self
        return replace(self, input_tokens=ceil(self.input_tokens * factor), input_usd=self.input_usd * factor)

    def limit_for(self, answer_tokens: int) -> int | None:
        """The `max_tokens` to send for an answer that may have so many; None where nothing is to be sent."""
        return answer_tokens if self.needs_limit or answer_tokens < self.answer_tokens else None

    def usd_with(self, answer_tokens: int) -> float:
        """The cost with an answer of so many tokens."""
        return self.input_usd + answer_tokens * self.answer_usd

    def tokens_for(self, usd: float) -> float:
        """How many tokens an answer may have for an amount; less than 0 where it does not pay for the request."""
        left = usd - self.input_usd
        if left < -MIN_USD:
            return -1
        return inf if self.answer_usd == 0 else floor((left + MIN_USD) / self.answer_usd)


def estimate(request: Request, candidates: Sequence[Candidate]) -> Estimate:
    """The worst-case usage of a request over several candidate models.

    An answer counts with what its model is told, else with the model's own limit, up to what is usual. A model whose
    limit is not known is not told any: its server may refuse one that it does not allow.
    """
    read = input_tokens_of(request)
    answers = [_answer_tokens(request, candidate) for candidate in candidates]
    costs = [(_usd(candidate.priced_name, read, 0), _usd(candidate.priced_name, read, 1)) for candidate in candidates]
    known = [(without, each - without) for without, each in costs if without is not None and each is not None]
    unpriced = [each.model for each, (without, _) in zip(candidates, costs, strict=True) if without is None]
    free = [each for each in candidates if _declared_limit(request, each) is None and card_of(each.model).output_tokens]
    input_usd, answer_usd = (max(prices) for prices in zip(*known, strict=True)) if known else (0.0, 0.0)
    least_tokens = min(max(answers), request.least_tokens)
    models = tuple(each.model for each in candidates)
    need = Estimate(read, max(answers), least_tokens, input_usd, answer_usd, bool(free), "".join(unpriced[:1]))
    return replace(need, models=models, has_images=has_images(request.messages))


def _answer_tokens(request: Request, candidate: Candidate) -> int:
    limit = _declared_limit(request, candidate)
    if limit is not None:
        return limit
    card = card_of(candidate.model)
    usual = DEFAULT_ANSWER_TOKENS if card.sampling else DEFAULT_THINKING_TOKENS
    return min(card.output_tokens, usual) if card.output_tokens else UNKNOWN_ANSWER_TOKENS


def _declared_limit(request: Request, candidate: Candidate) -> int | None:
    return least(request.max_tokens, candidate.max_tokens)


def _usd(model: str, read: int, written: int) -> float | None:
    """The worst-case cost: some providers charge for writing a cache."""
    return cost_usd(model, Usage(read, written, stored_tokens=read))


def input_tokens_of(request: Request) -> int:
    """About how many tokens a request takes, the form of its answer and the marks between messages included."""
    form = 0.0 if request.schema is None else weight(json.dumps(request.schema))
    marks = TOKENS_PER_MESSAGE * (1 + len(request.messages))
    return tokens_of(request.messages, request.system) + ceil(form) + marks


def least(*bounds: int | None) -> int | None:
    """The least of some bounds; None where there are none."""
    return min((bound for bound in bounds if bound is not None), default=None)


def tokens_of(messages: Sequence[Message], system: str = "") -> int:
    """About how many tokens messages and a system text take."""
    if isinstance(messages, Messages):
        return ceil(weight(system) + messages.weight) + TOKENS * messages.images
    texts = ceil(weight(system) + sum(map(weight, [message.text for message in messages])))
    return texts + TOKENS * sum(len(message.images) for message in messages if message.images)


def has_images(messages: Sequence[Message]) -> bool:
    """Whether there are images to look at in any of some messages."""
    return messages.images > 0 if isinstance(messages, Messages) else any(message.images for message in messages)


# Of a shorter request, what a provider adds to every request says more than how it counts texts.
LONG_TOKENS = 200


@dataclass(frozen=True, slots=True)
class _Excess:
    """How much more a model has counted than was estimated: in times of long requests, in tokens of short ones."""

    times: float = 1.0
    tokens: int = 0

    def with_count(self, estimated: int, counted: int) -> _Excess:
        if estimated < LONG_TOKENS:
            return _Excess(self.times, max(self.tokens, counted - estimated))
        return _Excess(max(self.times, counted / estimated), self.tokens)

    def factor(self, estimated: int) -> float:
        """How many times an estimate a request may take."""
        return max(self.times, 1 + self.tokens / max(1, estimated))


class Calibration:
    """The ratio of counted to estimated tokens of a run's models; it never lowers an estimate."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], _Excess] = {}

    def learn(self, model: str, request: Request, counted: int) -> None:
        """Take in how many tokens a model has counted for a request; it may be called `provider/model`."""
        estimated, shows_images = input_tokens_of(request), has_images(request.messages)
        for name in {model, model.partition("/")[2] or model}:
            self._known[name, shows_images] = self._of(name, shows_images).with_count(estimated, counted)

    def adjust(self, need: Estimate) -> Estimate:
        """An estimate raised by the counts of its models so far."""
        kinds = (False, True) if need.has_images else (False,)
        found = [self._of(model, kind).factor(need.input_tokens) for model in need.models for kind in kinds]
        return need.times(max(found, default=1.0))

    def _of(self, model: str, has_images: bool) -> _Excess:
        return self._known.get((model, has_images)) or _Excess()
