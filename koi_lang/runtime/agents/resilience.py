"""`resilience` of a handler: retries with growing pauses, and a time limit for each attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from koi_lang.errors import AgentError, capture
from koi_lang.js.conversions import is_number
from koi_lang.js.errors import catch_value
from koi_lang.runtime.concurrency.cancellation import CancelScope

MAX_PAUSE_S = 60.0


class AttemptTimeoutError(AgentError):
    """One attempt took longer than it may."""


@dataclass(frozen=True, slots=True)
class Resilience:
    """How a handler is retried.

    Attributes:
        attempts: how often it is tried, at least once.
        delay_s: pause after the first failure.
        factor: what the pause is multiplied with after each further one.
        timeout_s: limit for one attempt; None is no limit.
    """

    attempts: int = 1
    delay_s: float = 0.0
    factor: float = 1.0
    timeout_s: float | None = None

    @staticmethod
    def of(declared: Mapping[str, Any]) -> Resilience:
        """The declared properties: `retry_max_attempts`, `retry_delay` and `timeout` in milliseconds, `backoff`."""
        backoff = declared.get("backoff", 1)
        timeout = declared.get("timeout")
        return Resilience(
            attempts=max(1, int(declared.get("retry_max_attempts", 1))),
            delay_s=float(declared.get("retry_delay", 0)) / 1000,
            factor=2.0 if backoff in ("exponential", True) else float(backoff) if is_number(backoff) else 1.0,
            timeout_s=None if timeout is None else float(timeout) / 1000,
        )

    async def run_limited(self, work: Coroutine[Any, Any, Any], limit_s: float | None) -> Any:
        """The result of work within the limit for one attempt. Raises AttemptTimeoutError."""
        async with CancelScope(limit_s) as scope:
            return await work
        raise AttemptTimeoutError(f"the handler took longer than {limit_s} s") from scope.caught


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that failed and is followed by another one.

    Attributes:
        attempt: its number, from 1.
        delay_s: the pause before the next one.
    """

    attempt: int
    delay_s: float
    error: Exception


async def resilient(
    policy: Resilience, attempt: Callable[[], Awaitable[Any]], pause: Callable[[FailedAttempt], Awaitable[None]]
) -> Any:
    """Run an attempt until it succeeds or the policy is exhausted; the last error is raised.

    Args:
        pause: waits between two attempts.
    """
    pause_s = policy.delay_s
    for number in range(1, policy.attempts + 1):
        ended = await capture(attempt())
        if ended.error is None or number == policy.attempts:
            return ended.result()
        catch_value(ended.error)
        await pause(FailedAttempt(number, pause_s, ended.error))
        pause_s = min(pause_s * policy.factor, MAX_PAUSE_S)
    raise AssertionError("a policy has at least one attempt")
