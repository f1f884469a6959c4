"""The runtime of `std/judge`: the token limit of a judge's model, and the reasons for missing grades."""

from __future__ import annotations

from typing import Any

from koi_lang.errors import AgentError, RequestError
from koi_lang.js.errors import ErrorValue, thrown
from koi_lang.llm import token_weight
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.model_calls.images import medium
from koi_lang.runtime.playbook.context_window import window_of
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import agent, perform_effect

# A result is graded by what a careful reader would still read in one go.
MAX_TOKENS = 100_000


async def request_room() -> int:
    """How many tokens a request of the agent may take whose handler is running. Raises AgentError outside of one."""
    asking = agent()
    if asking is None:
        raise AgentError("only an agent has a model", help="Call this in a handler.")

    async def look() -> int:
        models = asking.run.models
        limit = window_of(models.options(asking), models.of(asking)).limit
        return MAX_TOKENS if limit is None else min(limit, MAX_TOKENS)

    return int(await perform_effect(Effect("judge.room", {}, asking.name, safe=True), look))


def has_broken_off(error: Any) -> bool:
    """Whether a playbook failed since the answer of its model broke off, and another one may arrive."""
    limit = _limit_of(error)
    return limit is not None and isinstance(limit.broken, RequestError) and limit.broken.repeatable


def problem_of(error: Any) -> str:
    """The fault of an answer without a result. Raises any other error again."""
    limit = _limit_of(error)
    if limit is None:
        raise thrown(error)
    if limit.broken is not None:
        raise limit.broken
    return limit.last or "there was no result"


def _limit_of(error: Any) -> LimitReachedError | None:
    """The limit of a call that an error stands for."""
    exception = error.exception if isinstance(error, ErrorValue) else None
    return exception if isinstance(exception, LimitReachedError) else None


def weight(text: str) -> float:
    """About how many tokens a text has."""
    return token_weight.weight(text)


def describe_medium(item: Any) -> str | None:
    """The description of an image or another file that cannot be judged; None for other values."""
    return medium(item)
