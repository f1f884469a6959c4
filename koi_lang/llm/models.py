"""Cards and costs of models by name.

The package is asked for what a card leaves open, since loading it takes a quarter of a second. Its data lie in its
files; nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from koi_lang.lazy import lazy_module
from koi_lang.llm.cards import CARDS, ModelCard
from koi_lang.llm.effort_list import EFFORT_CARDS, EffortCard
from koi_lang.llm.messages import Usage

if TYPE_CHECKING:
    from genai_prices import data_snapshot
else:
    data_snapshot = lazy_module("genai_prices.data_snapshot")


# Models of OpenAI that the chat interface does not have, by the vendor's pages or its answers to requests.
ONLY_RESPONSES = (
    "o[0-9]-pro o[0-9]*-deep-research gpt-5*-pro gpt-5*-codex* codex-mini-latest computer-use-preview gpt-daybreak-*"
    " gpt-rosalind-*"
)
# Those that it gives no tools while they think. One that both interfaces have loses nothing by standing here.
THINKING_RESPONSES = "gpt-5.[4-9]* gpt-[6-9]* gpt-[0-9][0-9]*"
RESPONSES_NAMES = f"{ONLY_RESPONSES} {THINKING_RESPONSES}"
STORING = 1.25  # what Anthropic and OpenAI take for a token that they are to remember, against one that they only read
MILLION = 1_000_000
# The date at the end of a name, and the version that Amazon adds: `-2025-08-07`, `-20250929-v1:0`.
DATE = re.compile(r"([-@]20\d\d-?[01]\d-?[0-3]\d)?(-v\d+(:\d+)?)?$")
WILDCARD = re.compile(r"[*[]")
UNKNOWN = ModelCard("")
# Providers whose models run on machines of the person, so that no token of them is paid for.
FREE_PROVIDERS = ("local", "ollama")
CardT = TypeVar("CardT", ModelCard, EffortCard)


@lru_cache(maxsize=512)  # asked for several times a request; all cards are looked at for an unknown name
def card_of(model: str) -> ModelCard:
    """The facts about a model.

    A vendor prefix (`anthropic/…`, `eu.anthropic.…`), a date, and points in the place of hyphens do not matter. What no
    card says is looked up in the package `genai-prices`, which is loaded then. A name that begins with a provider of
    `FREE_PROVIDERS` is that of a model without a price.
    """
    written = model.rpartition("/")[2].lower().rpartition("anthropic.")[2]
    name = written.replace(".", "-")
    asked = {name, DATE.sub("", name, count=1)}
    card = _first_fit(CARDS, asked) or UNKNOWN
    if (effort := _first_fit(EFFORT_CARDS, asked)) is not None:
        card = replace(card, efforts=effort.efforts, effort_form=effort.form, usual_effort=effort.usual)
    if any(_fits(each, asked) for each in RESPONSES_NAMES.split()):
        card = replace(card, responses=True)
    if model.partition("/")[0] in FREE_PROVIDERS:
        return replace(card, prices_usd=(0.0, 0.0, 0.0), longer=None)
    return complete_card(card, written)


def priced_name(provider: str, model: str) -> str:
    """The name by which the cost of a model is looked up: with its provider where that takes no money."""
    return f"{provider}/{model}" if provider in FREE_PROVIDERS else model


def _first_fit(cards: Sequence[CardT], asked: Set[str]) -> CardT | None:
    """The first card with a name that fits one that is asked for."""
    return next((card for card in cards if any(_fits(each, asked) for each in card.names.split())), None)


def _fits(known: str, asked: Set[str]) -> bool:
    plain = known.replace(".", "-")
    start = WILDCARD.split(plain, maxsplit=1)[0]
    # Most names begin otherwise, so that their patterns need not be compiled.
    return plain in asked or (
        start != plain and any(name.startswith(start) and fnmatchcase(name, plain) for name in asked)
    )


def cost_usd(model: str, usage: Usage) -> float | None:
    """The cost of an answer; None when the price of the model is unknown."""
    card = card_of(model)
    if card.prices_usd is None:
        return None
    price_in, price_cached, price_out = card.prices_usd
    fresh = max(0.0, usage.input_tokens - usage.cached_tokens + usage.stored_tokens * (STORING - 1))
    read, written = fresh * price_in + usage.cached_tokens * price_cached, usage.output_tokens * price_out
    times_read, times_written = _times(card, usage.input_tokens)
    return (read * times_read + written * times_written) / MILLION


def _times(card: ModelCard, input_tokens: int) -> tuple[float, float]:
    """How many times the usual price a request of this length, and its answer, cost."""
    if card.longer is None or input_tokens < card.longer[0]:
        return 1.0, 1.0
    return card.longer[1:]


# Vendors whose models nobody else gives away: what an open model costs depends on who serves it.
VENDORS = {
    "openai": re.compile(r"(chatgpt|ft:gpt|gpt|o\d+|text-embedding)-(?!oss)"),
    "anthropic": re.compile("claude-"),
    "google": re.compile("gemini-"),
    "x-ai": re.compile("grok-"),
}
KINDS = ("input_mtok", "cache_read_mtok", "output_mtok")


def complete_card(card: ModelCard, name: str) -> ModelCard:
    """A card completed with the price and the window from the package.

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
