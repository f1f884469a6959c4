"""Requests and answers turned into what they take and cost, estimated where nobody counted."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from koi_lang.llm.images import TOKENS
from koi_lang.llm.messages import Message, Request, Usage
from koi_lang.llm.models import card_of, cost_usd

CHARACTERS_PER_TOKEN = 4
USUAL_OUTPUT_TOKENS = 4096
MOST_OUTPUT_TOKENS = 8192


def usage_of(request: Request, characters: int, usage: Usage | None) -> Usage:
    """The usage a provider told, else an estimate from the request and the characters of the answer."""
    return usage or Usage(tokens_of(request.messages, request.system), _tokens(characters), estimated=True)


def worst_case(request: Request, model: str) -> tuple[int, float | None]:
    """The most tokens a request and its answer should take and what they would cost, to check before it is sent.

    The answer counts with `max_tokens`, else with the model's limit up to 8192, else with 4096 tokens. The price is
    None where it is not known.
    """
    known = min(card_of(model).output_tokens or USUAL_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS)
    usage = Usage(
        tokens_of(request.messages, request.system), known if request.max_tokens is None else request.max_tokens
    )
    return usage.input_tokens + usage.output_tokens, cost_usd(model, usage)


def tokens_of(messages: Sequence[Message], system: str = "") -> int:
    """About how many tokens messages and a system text take."""
    characters = len(system) + sum(map(len, map(attrgetter("text"), messages)))
    return _tokens(characters) + TOKENS * sum(map(len, map(attrgetter("images"), messages)))


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
