"""Prices and windows of models that have come out since the cards were written: those of the package `genai-prices`.

The package is asked for what a card leaves open, since loading it takes a quarter of a second. Its data lie in its
files; nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.llm.cards import ModelCard

if TYPE_CHECKING:
    from genai_prices import data_snapshot
else:
    data_snapshot = lazy_module("genai_prices.data_snapshot")

# Vendors whose models nobody else gives away: what an open model costs depends on who serves it.
VENDORS = {
    "openai": re.compile(r"(chatgpt|ft:gpt|gpt|o\d+|text-embedding)-(?!oss)"),
    "anthropic": re.compile("claude-"),
    "google": re.compile("gemini-"),
    "x-ai": re.compile("grok-"),
}
KINDS = ("input_mtok", "cache_read_mtok", "output_mtok")


def complete_card(card: ModelCard, name: str) -> ModelCard:
    """A card with what the package knows about the price and the window, where the card leaves them open.

    Args:
        card: of the model, which counts where it says something.
        name: of the model, without a vendor, in lower case.
    """
    vendor = next((vendor for vendor, names in VENDORS.items() if names.match(name)), None)
    if vendor is None or (card.prices_usd is not None and card.context_tokens is not None):
        return card
    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(name, None, vendor, None)
    except LookupError:
        return card
    if card.context_tokens is None:
        card = replace(card, context_tokens=found.context_window)
    return card if card.prices_usd is not None else _with_price(card, found.prices)


def _with_price(card: ModelCard, prices: Any) -> ModelCard:
    """A card with the highest price that holds from today on; without one for input or answers, as it is."""
    offers = [offer.prices for offer in _current(prices)] if isinstance(prices, list) else [prices]
    columns = [[price for offer in offers if (price := getattr(offer, kind, None)) is not None] for kind in KINDS]
    if not columns[0] or not columns[2]:
        return card
    usual, long = [[_highest(column, is_long) for column in columns] for is_long in (False, True)]
    for row in (usual, long):
        row[1] = min(row[1] or row[0], row[0])  # what has no price for remembered input takes that of other input
    starts = [tier.start for column in columns for price in column for tier in getattr(price, "tiers", ())]
    times = [dear / cheap if cheap else 1.0 for cheap, dear in zip(usual, long, strict=True)]
    longer = (min(starts), max(times[:2]), times[2]) if starts else None
    return replace(card, prices_usd=(usual[0], usual[1], usual[2]), longer=longer)


def _current(offers: list[Any]) -> list[Any]:
    """The offers that hold today at some hour, or later; one with a day takes the place of those before."""
    days = [getattr(offer.constraint, "start_date", None) for offer in offers]
    begun = [index for index, day in enumerate(days) if day is not None and day <= date.today()]
    return offers[max(begun, default=0) :]


def _highest(column: Iterable[Any], is_long: bool) -> float:
    """The highest price of one kind, for usual or for long requests; 0 without any."""
    tiers = [[getattr(price, "base", price), *(tier.price for tier in getattr(price, "tiers", ()))] for price in column]
    return max((float(max(each) if is_long else each[0]) for each in tiers), default=0.0)
