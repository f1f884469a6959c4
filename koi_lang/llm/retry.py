"""Failed requests repeated: a model turned into one that waits and asks again while nothing has been handed out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn, TypeAlias

from koi_lang.errors import ProviderError, RequestError
from koi_lang.events import RetryEnded, RetryStarted
from koi_lang.llm.layers import Attempt, Layer, OnEvent, ignore_event, name_of
from koi_lang.llm.messages import Adapter, Delta, Request

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
# At one answer, however many of them break off, or are refused; one that weakens a request may follow.
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between attempts.

    Attributes:
        base_s: after the first failure; it doubles with every further one.
        cap_s: the longest wait; a provider that asks for more is not waited for.
        spread: a number from 0 to 1 that says where between half the pause and the whole one to wait, so that
            agents that failed together do not come back together.
    """

    base_s: float = 2.0
    cap_s: float = 60.0
    spread: Callable[[], float] = random.random

    def after(self, attempt: int, asked_s: float | None = None) -> float:
        """Seconds to wait after a failed attempt, counted from 1: at least those that the provider asks for."""
        if asked_s is not None:
            return asked_s + min(asked_s, self.base_s) * self.spread() / 2
        whole_s = min(self.cap_s, self.base_s * 2.0 ** (attempt - 1))
        return whole_s * (1 + self.spread()) / 2


DEFAULT_PAUSES = Pauses()


def retry(
    model: Adapter,
    *,
    tries: int = MAX_ATTEMPTS,
    pauses: Pauses = DEFAULT_PAUSES,
    sleep: Sleep = asyncio.sleep,
    on_event: OnEvent = ignore_event,
) -> Adapter:
    """A model that repeats a request that may succeed later, as long as no part of an answer was handed out.

    Args:
        tries: most attempts, the first one included.
        sleep: waits a number of seconds; cancelling it ends the request.
        on_event: told `retry_started` before a pause and `retry_ended` when it is known what came of it.
    """
    return _Retry(model, tries, pauses, sleep, on_event)


class _Retry(Layer):
    def __init__(self, inner: Adapter, tries: int, pauses: Pauses, sleep: Sleep, on_event: OnEvent) -> None:
        super().__init__(inner)
        self._tries = tries
        self._pauses = pauses
        self._sleep = sleep
        self._on_event = on_event

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        first = number = request.attempts + 1
        while True:
            attempted = replace(request, attempts=number - 1)
            trial = Attempt(self.inner, attempted, _may_pass, partial(self._tell_success, first, number))
            try:
                async with aclosing(trial.deltas()) as deltas:
                    async for delta in deltas:
                        yield delta
            except RequestError as error:
                raise self._number(error, number) from error.__cause__
            if not isinstance(trial.failure, RequestError):
                return
            number = trial.failure.attempts = max(number, trial.failure.attempts)
            delay_s = self._delay_s(first, attempted, trial.failure)
            if trial.failure.discarded is not None:
                yield trial.failure.discarded
            await self._sleep(delay_s)
            number += 1

    def _delay_s(self, first: int, request: Request, failure: RequestError) -> float:
        """How long to wait for the next attempt, which is told. Raises RequestError when there is none."""
        attempt = failure.attempts
        if attempt >= min(self._tries, request.most_requests):
            self._give_up(first, attempt, failure, f"{failure.message} ({attempt} attempts)")
        delay_s = self._pauses.after(attempt, failure.retry_after_s)
        if (failure.retry_after_s or 0) > self._pauses.cap_s:
            delay_s = failure.retry_after_s or 0
            asked = f"a wait of {delay_s:.0f} s, longer than the {self._pauses.cap_s:g} s allowed"
            failure.repeatable = False  # not within the time that anybody waits
            failure.help = f"Try again in {delay_s:.0f} s, or choose another model with `koi run -m provider/model`."
            self._give_up(first, attempt, failure, f"{failure.message} ({asked})")
        self._on_event(
            RetryStarted(name_of(self), attempt=attempt, tries=self._tries, delay_s=delay_s, error=failure.message)
        )
        return delay_s

    def _number(self, error: RequestError, attempt: int) -> RequestError:
        """A failure that ends the attempts here; that of the last one that there may be says how many there were."""
        attempt = error.attempts = max(attempt, error.attempts)
        is_last = attempt >= self._tries > 1 and error.repeatable
        return error.with_message(f"{error.message} ({attempt} attempts)") if is_last else error

    def _tell_success(self, first: int, attempt: int) -> None:
        if attempt > first:
            self._on_event(RetryEnded(name_of(self), True, attempt))

    def _give_up(self, first: int, attempt: int, failure: RequestError, message: str) -> NoReturn:
        if attempt > first:
            self._on_event(RetryEnded(name_of(self), False, attempt, message))
        if self._tries > 1:
            raise failure.with_message(message) from failure
        raise failure


def _may_pass(error: ProviderError) -> bool:
    return isinstance(error, RequestError) and error.repeatable
