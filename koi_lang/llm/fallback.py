"""Several models turned into one: the next answers where one cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

from koi_lang.errors import ProviderError, RequestError
from koi_lang.events import ModelReplaced
from koi_lang.llm.layers import Attempt, Layer, OnEvent, candidates_of, ignore_event, is_small, name_of, takes_tools
from koi_lang.llm.messages import Adapter, Delta, Request, TextDelta, ThinkingDelta
from koi_lang.llm.usage import Candidate

BAD_REQUESTS = frozenset({400, 422})  # no other model would be asked anything else
MAX_REASON_CHARS = 120


def fallback(models: Sequence[Adapter], on_event: OnEvent = ignore_event) -> Adapter:
    """A model that asks several in order and answers with the first that begins to.

    Args:
        models: at least one; provider and model of the first are those of the whole.
        on_event: told `model_replaced` with `model`, `by` and `error`.
    """
    return _Fallback(models, on_event)


class _Fallback(Layer):
    def __init__(self, models: Sequence[Adapter], on_event: OnEvent) -> None:
        super().__init__(models[0])
        self._models, self._on_event = tuple(models), on_event

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        made = request.attempts
        for index, model in enumerate(self._models):
            following = self._models[index + 1 :]
            trial = Attempt(model, self._request_for(model, request, made, len(following)), _may_differ)
            async with aclosing(trial.deltas()) as deltas:
                async for delta in deltas:
                    yield self._sign(delta, model)
            if trial.failure is None:
                return
            self._sign_failure(trial.failure, model)
            made = _requests_made(made, trial.failure)
            if isinstance(trial.failure, RequestError):
                trial.failure.attempts = made
            self._move_on(index, trial.failure, is_last=not following or made >= request.most_requests)
            if isinstance(trial.failure, RequestError) and trial.failure.discarded is not None:
                yield trial.failure.discarded

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All that the models can ask."""
        return [candidate for model in self._models for candidate in candidates_of(model)]

    @property
    def takes_tools(self) -> bool:
        """Whether one of the models is offered its actions as tools."""
        return any(map(takes_tools, self._models))

    @property
    def is_small(self) -> bool:
        """Whether all of the models are small."""
        return all(map(is_small, self._models))

    async def aclose(self) -> None:
        """Close all models, also when closing one of them fails."""
        async with AsyncExitStack() as stack:
            for model in self._models:
                stack.push_async_callback(model.aclose)

    def _request_for(self, model: Adapter, request: Request, made: int, following: int) -> Request:
        """The request for a model; it leaves one for each that follows, as far as there are as many.

        A model that a request names belongs to the first provider.
        """
        name = request.model if model is self._models[0] else ""
        most = max(made + 1, request.most_requests - following)
        return replace(request, model=name, attempts=made, most_requests=most)

    def _sign(self, delta: Delta, model: Adapter) -> Delta:
        if model is self._models[0] or isinstance(delta, (TextDelta, ThinkingDelta)):
            return delta
        return replace(delta, answered_by=name_of(model))

    def _sign_failure(self, failure: ProviderError, model: Adapter) -> None:
        """Have a failure say whose answer was discarded."""
        if isinstance(failure, RequestError) and failure.discarded is not None:
            failure.discarded = self._sign(failure.discarded, model)

    def _move_on(self, index: int, failure: ProviderError, *, is_last: bool) -> None:
        """Tell about the next model. Raises ProviderError when there is none, or no request is left for it."""
        if not is_last:
            following = self._models[index + 1]
            self._on_event(ModelReplaced(name_of(self._models[index]), name_of(following), failure.message))
            return
        if len(self._models) == 1:
            raise failure
        names = ", ".join(f"`{name_of(each)}`" for each in self._models[: index + 1])
        message = f"none of {names} answers; the last: {_shorten_reason(failure.message)}"
        if isinstance(failure, RequestError):
            raise failure.with_message(message) from failure
        raise ProviderError(message, help=failure.help) from failure


def _requests_made(made: int, failure: ProviderError) -> int:
    """How many requests there were with those that a failure tells of."""
    return max(made + 1, failure.attempts) if isinstance(failure, RequestError) else made


def _may_differ(error: ProviderError) -> bool:
    """Whether another model may answer: not where the request itself is wrong."""
    return not (isinstance(error, RequestError) and error.status in BAD_REQUESTS)


def _shorten_reason(text: str) -> str:
    return text if len(text) <= MAX_REASON_CHARS else f"{text[:MAX_REASON_CHARS]}…"
