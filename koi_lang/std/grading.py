"""What `std/judge` asks of the runtime: how much the model of a judge reads, and why it gave no grades."""

from __future__ import annotations

from typing import Any

from koi_lang.errors import AgentError, PlaybookError
from koi_lang.js.errors import ErrorValue
from koi_lang.runtime.playbook.context_window import window_of
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import agent, perform_effect

# A result is graded by what a careful reader would still read in one go.
MOST_TOKENS = 100_000


async def request_room() -> int:
    """How many tokens a request of the agent may take whose handler is running. Raises AgentError outside of one."""
    asking = agent()
    if asking is None:
        raise AgentError("only an agent has a model", help="Call this in a handler.")

    async def look() -> int:
        models = asking.run.models
        limit = window_of(models.options(asking), models.of(asking)).limit
        return MOST_TOKENS if limit is None else min(limit, MOST_TOKENS)

    return int(await perform_effect(Effect("judge.room", {}, asking.name, safe=True), look))


def is_unanswered(error: Any) -> bool:
    """Whether a playbook failed since its model did not return; a model that cannot be asked is another failure."""
    return isinstance(error, ErrorValue) and isinstance(error.exception, PlaybookError)
