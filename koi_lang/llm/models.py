"""What is known about models: how much they read and write, what they cost, what they accept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from koi_lang.llm.messages import Usage


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Facts about one family of models; None where they are not known.

    Attributes:
        pattern: a regular expression for the start of the model's name.
        context_tokens: most tokens of request and answer together.
        output_tokens: most tokens of an answer.
        prices_usd: per million tokens: input, cached input, output.
        sampling: whether a temperature may be sent; newer models refuse a request that has one.
        schemas: whether the model can be held to a JSON Schema where its provider offers that.
    """

    pattern: str
    context_tokens: int | None = None
    output_tokens: int | None = None
    prices_usd: tuple[float, float, float] | None = None
    sampling: bool = True
    schemas: bool = True


PRICES_AS_OF = "2026-04-27"
STORING = 1.25  # what Anthropic takes for a token that it is to remember, against one that it only reads

# The first pattern that fits counts.
CARDS = (
    ModelCard(r"gpt-4o-mini", 128_000, 16_384, (0.15, 0.075, 0.60)),
    ModelCard(r"gpt-4o", 128_000, 16_384, (2.50, 1.25, 10.00)),
    ModelCard(r"gpt-4\.1-nano", 1_047_576, 32_768, (0.10, 0.025, 0.40)),
    ModelCard(r"gpt-4\.1-mini", 1_047_576, 32_768, (0.40, 0.10, 1.60)),
    ModelCard(r"gpt-4\.1", 1_047_576, 32_768, (2.00, 0.50, 8.00)),
    ModelCard(r"gpt-(3\.5|4$|4-)", schemas=False),
    ModelCard(r"o\d|gpt-([5-9]|\d\d)", sampling=False),
    ModelCard(r"claude-haiku-4-5", 200_000, 64_000, (1.00, 0.10, 5.00)),
    ModelCard(r"claude-sonnet-4-[56]", 200_000, 64_000, (3.00, 0.30, 15.00)),
    ModelCard(r"claude-opus-4-[56]", 200_000, 64_000, (5.00, 0.50, 25.00)),
    ModelCard(r"claude-(sonnet|opus)-4-[02]", 200_000, 32_000, schemas=False),
    ModelCard(r"claude-3", 200_000, 8_192, schemas=False),
    ModelCard(r"claude-", 200_000, 64_000, sampling=False),
    ModelCard(r"gemini-2", 1_048_576, 65_536),
    ModelCard(r"gemini-", sampling=False),
    ModelCard(r"kimi-", sampling=False),
    ModelCard(r"(rehearsal|scripted)$", prices_usd=(0.0, 0.0, 0.0)),
)
UNKNOWN = ModelCard("")


def card_of(model: str) -> ModelCard:
    """The facts about a model; a vendor prefix (`anthropic/…`, `eu.anthropic.…`) does not matter."""
    name = model.rpartition("/")[2].lower().rpartition("anthropic.")[2]
    return next((card for card in CARDS if re.match(card.pattern, name)), UNKNOWN)


def cost_usd(model: str, usage: Usage) -> float | None:
    """What an answer cost, None when the price of the model is not known."""
    prices = card_of(model).prices_usd
    if prices is None:
        return None
    price_in, price_cached, price_out = prices
    fresh = max(0.0, usage.input_tokens - usage.cached_tokens + usage.stored_tokens * (STORING - 1))
    return (fresh * price_in + usage.cached_tokens * price_cached + usage.output_tokens * price_out) / 1_000_000
