"""Several models turned into one: the next answers where one cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

from koi_lang.errors import ProviderError, RequestError
from koi_lang.events import ModelReplaced
from koi_lang.llm.layers import Attempt, Layer, OnEvent, candidates_of, ignore_event, name_of, takes_tools
from koi_lang.llm.messages import Adapter, Delta, Request, TextDelta, ThinkingDelta
from koi_lang.llm.usage import Candidate

BAD_REQUESTS = frozenset({400, 422})  # no other model would be asked anything else
LONGEST_REASON = 120


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
        for model, following in zip(self._models, (*self._models[1:], None), strict=True):
            trial = Attempt(model, self._request_for(model, request), _may_differ)
            async with aclosing(trial.deltas()) as deltas:
                async for delta in deltas:
                    yield self._sign(delta, model)
            if trial.failure is None:
                return
            self._sign_failure(trial.failure, model)
            self._move_on(model, following, trial.failure)
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

    async def aclose(self) -> None:
        """Close all models, also when closing one of them fails."""
        async with AsyncExitStack() as stack:
            for model in self._models:
                stack.push_async_callback(model.aclose)

    def _request_for(self, model: Adapter, request: Request) -> Request:
        """A model that a request names belongs to the first provider."""
        return request if model is self._models[0] else replace(request, model="")

    def _sign(self, delta: Delta, model: Adapter) -> Delta:
        if model is self._models[0] or isinstance(delta, (TextDelta, ThinkingDelta)):
            return delta
        return replace(delta, answered_by=name_of(model))

    def _sign_failure(self, failure: ProviderError, model: Adapter) -> None:
        """Have a failure say whose answer was discarded."""
        if isinstance(failure, RequestError) and failure.discarded is not None:
            failure.discarded = self._sign(failure.discarded, model)

    def _move_on(self, model: Adapter, following: Adapter | None, failure: ProviderError) -> None:
        """Tell about the next model. Raises ProviderError when there is none."""
        if following is not None:
            self._on_event(ModelReplaced(name_of(model), name_of(following), failure.message))
            return
        if len(self._models) == 1:
            raise failure
        names_of_all = ", ".join(f"`{name_of(each)}`" for each in self._models)
        message = f"none of {names_of_all} answers; the last: {_shorten_reason(failure.message)}"
        if isinstance(failure, RequestError):
            raise failure.with_message(message) from failure
        raise ProviderError(message, help=failure.help) from failure


def _may_differ(error: ProviderError) -> bool:
    """Whether another model may answer: not where the request itself is wrong."""
    return not (isinstance(error, RequestError) and error.status in BAD_REQUESTS)


def _shorten_reason(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"
