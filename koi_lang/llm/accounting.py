"""What answers take and cost."""

from __future__ import annotations

from koi_lang.llm.messages import Request, Usage
from koi_lang.llm.models import card_of, cost_usd

CHARACTERS_PER_TOKEN = 4
MOST_OUTPUT_TOKENS = 4096


def worst_case(request: Request, model: str) -> tuple[int, float | None]:
    """The most tokens a request and its answer can take, and what they would cost; None where prices are unknown."""
    read = (len(request.system) + sum(len(message.text) for message in request.messages)) // CHARACTERS_PER_TOKEN
    written = request.max_tokens or min(card_of(model).output_tokens or MOST_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS)
    return read + written, cost_usd(model, Usage(read, written))
