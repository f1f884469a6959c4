"""What is known about models: every card is reached, and prices are never too low without saying so."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from koi_lang.llm.cards import CARDS, ModelCard
from koi_lang.llm.messages import Usage
from koi_lang.llm.models import UNKNOWN, card_of, complete_card, cost_usd
from koi_lang.llm.providers import PROVIDERS

# One name for every card, in the order of the cards.
NAMES = """
rehearsal
text-embedding-3-small text-embedding-3-large gemini-embedding-001 gemini-embedding-2 mistral-embed

gpt-4o-search-preview gpt-4o-audio-preview-2025-06-03 gpt-4o-mini-audio-preview gpt-audio-1.5
gpt-audio-mini-2025-12-15 chatgpt-4o-latest gpt-4o-2024-05-13 gpt-4o-mini-2024-07-18 gpt-4o gpt-4.1-nano gpt-4.1-mini
gpt-4.1-2025-04-14 gpt-4-turbo-2024-04-09 gpt-4-turbo-preview gpt-4-32k gpt-4-0613 gpt-3.5-turbo-0301
gpt-3.5-turbo-16k gpt-3.5-turbo-1106 gpt-3.5-turbo o1-preview-2024-09-12 o1-mini o1 o1-pro o3-2025-04-16 o3-pro o3-mini
o4-mini codex-mini-latest gpt-5.1-chat-latest gpt-5.3-chat-latest gpt-5.1-codex-max gpt-5-mini gpt-5-nano gpt-5-pro
gpt-5.3-codex gpt-5.2-pro gpt-5.4-mini-2026-03-17 gpt-5.4-nano gpt-5.4 gpt-5.5 gpt-5.4-pro gpt-5.6 gpt-5.6-terra
gpt-5.6-luna gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-terra gpt-6.2-sol gpt-6.2-astra gpt-12

claude-fable-5-2 claude-mythos-5-1 claude-fable-5 claude-mythos-preview claude-opus-5-5 claude-sonnet-5-5
claude-haiku-5-5 claude-opus-4-8 claude-sonnet-5 claude-opus-4-6 claude-sonnet-4.6 claude-opus-4-5-20251101
global.anthropic.claude-sonnet-4-5-20250929-v1:0 claude-haiku-4-5 claude-opus-4-1 claude-sonnet-4-20250514
claude-3-7-sonnet-latest claude-next

gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-3-flash-preview gemini-3.1-flash-lite gemini-pro-latest
gemini-3.5-flash gemini-flash-lite-latest gemini-flash-latest gemini-4-argon gemini-2.5-flash-image gemini-9

openai/gpt-oss-120b gpt-oss-20b gpt-oss:20b grok-4.7 grok-4.5 grok-4.3 grok-build-0.1 deepseek-flash deepseek-v4-pro
deepseek-chat kimi-k3.1-pro kimi-k3 kimi-k2.7-code kimi-k2.7-code-highspeed kimi-k2.6 kimi-k2.5 kimi-k2-thinking
kimi-latest mistral-small-latest mistral-medium-latest mistral-large-latest mistral-large-2512 mistral-large-4
ministral-3b-latest ministral-8b-2512 ministral-14b-latest codestral-latest qwen-plus qwen3.8-max qwen3.8-flash
qwen/qwen3.8-27b qwen3.7-max pixtral-12b llama3.2-vision llama3.1:8b
""".split()
NO_WINDOW = (
    "openrouter/auto",
    "qwen-plus",
    "llama3.2",
)  # it depends on the model, is disputed, or is set by the server


def test_every_card_is_reached() -> None:
    """No pattern hides behind one that stands before it."""
    assert [card.names for card in CARDS] == [card_of(name).names for name in NAMES]


@pytest.mark.parametrize(
    ("package", "file"), [("openai", "types/shared/chat_model.py"), ("anthropic", "types/model.py")]
)
def test_models_that_an_sdk_names_have_a_window(package: str, file: str) -> None:
    """Every model of the installed SDKs has a card of its own, with its window."""
    found = find_spec(package)
    (folder,) = (found and found.submodule_search_locations) or [""]
    names = re.findall(r'^\s+"([\w.-]+)",$', Path(folder, file).read_text("utf-8"), re.MULTILINE)

    assert len(names) > 10
    assert [] == [name for name in names if card_of(name).context_tokens is None]


def test_default_models_have_a_window_and_a_price() -> None:
    """What is used when nobody chooses is known, except where it is chosen later, or runs at home.

    Sources differ about the window of `qwen-plus`.
    """
    cards = {row.model: card_of(row.model) for row in PROVIDERS if row.model}

    assert ["qwen-plus", "openrouter/auto", "llama3.2"] == [each for each in cards if not cards[each].context_tokens]
    assert ["openrouter/auto", "llama3.2"] == [name for name in cards if cards[name].prices_usd is None]


@pytest.mark.parametrize(
    "name",
    ["gpt-6-sol-fast", "gpt-5.5:extended", "claude-sonnet-9", "mistral-small:24b", "kimi-k3:cloud"],
)
def test_a_variant_has_no_price_of_another_model(name: str) -> None:
    """Faster and longer variants cost more, and models at home nothing: a name has to fit as a whole."""
    assert card_of(name).prices_usd is None


def test_a_name_without_facts_has_the_empty_card() -> None:
    """Nothing is guessed about a model that nobody has heard of."""
    assert card_of("somebody/something-7b") == UNKNOWN


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("gpt-5.4", 271_999, (2.5, 15.0)),
        ("gpt-5.4", 272_000, (5.0, 22.5)),
        ("anthropic/claude-haiku-5.5", 100_000, (0.5, 2.5)),
        ("gemini-2.5-pro", 200_001, (2.5, 15.0)),
        ("grok-4.3", 900_000, (2.5, 5.0)),
        ("claude-sonnet-4-6", 900_000, (3.0, 15.0)),
    ],
)
def test_long_requests_cost_more(model: str, tokens: int, expected: tuple[float, float]) -> None:
    """From some length on, the whole request and its answer have higher prices."""
    price_in, price_out = expected

    assert cost_usd(model, Usage(tokens, 1000)) == pytest.approx((tokens * price_in + 1000 * price_out) / 1e6)


def test_cached_tokens_of_a_long_request_cost_more_too() -> None:
    """What is taken off for remembered input is taken off the higher price."""
    usage = Usage(300_000, 0, cached_tokens=300_000)

    assert cost_usd("gpt-5.4", usage) == pytest.approx(0.3 * 0.50)


def test_cached_input_never_costs_more_than_other_input() -> None:
    """Prices stand in the order in which they are read: input, cached input, answer."""
    priced = [card.prices_usd for card in CARDS if card.prices_usd]

    assert [] == [prices for prices in priced if not 0 <= prices[1] <= prices[0]]


def test_a_request_and_its_answer_fit_the_window() -> None:
    """No card promises more than its window holds."""
    cards = [card for card in CARDS if card.context_tokens is not None]

    assert [] == [card for card in cards if max(card.output_tokens or 0, card.input_tokens or 0) > card.context_tokens]


def test_no_price_is_below_that_of_the_package() -> None:
    """A budget may be left over and not overdrawn: ours are those of `genai-prices`, or higher."""
    lower = []
    for name in NAMES:
        card = card_of(name)
        other = complete_card(ModelCard(""), name).prices_usd
        if (
            card.prices_usd
            and other
            and any(ours + 1e-9 < theirs for ours, theirs in zip(card.prices_usd, other, strict=True))
        ):
            lower.append((name, card.prices_usd, other))

    assert lower == []


@pytest.mark.parametrize(
    ("name", "prices", "window"),
    [
        ("claude-3-7-sonnet-20250219", (3.0, 0.3, 15.0), 200_000),
        ("openai/gpt-4o:extended", (6.0, 6.0, 18.0), None),
        ("gpt-4-32k", (60.0, 60.0, 120.0), 32_768),
        ("llama3.2", None, None),
        ("deepseek-r1:8b", None, None),
        ("gpt-oss:20b", None, None),
        ("claude-next", None, 200_000),
    ],
)
def test_what_no_card_says_is_looked_up(
    name: str, prices: object, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models of vendors have the price and the window of the package, without the network; others stay unknown."""
    monkeypatch.setattr(socket, "socket", None)

    assert (prices, window) == (card_of(name).prices_usd, card_of(name).context_tokens)


@pytest.mark.parametrize(
    ("name", "prices", "longer"),
    [
        ("gemini-3.8-flash", (1.5, 0.15, 7.5), None),
        ("gpt-5.5", (5.0, 0.5, 30.0), (272_000, 2.0, 1.5)),
        ("claude-haiku-5-5", (0.1, 0.01, 0.5), (100_000, 5.0, 5.0)),
        ("gpt-4o-search-preview", (2.5, 2.5, 10.0), None),
    ],
)
def test_the_highest_price_of_the_package_counts(name: str, prices: object, longer: object) -> None:
    """That of a later day or another hour, too; long requests cost more where the package says so."""
    card = complete_card(ModelCard(""), name)

    assert (prices, longer) == (card.prices_usd, card.longer and tuple(round(each, 6) for each in card.longer))


def test_known_models_do_not_load_the_package() -> None:
    """It takes a while."""
    code = "import sys; from koi_lang.llm.models import card_of; card_of('gpt-4o'); card_of('x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "genai_prices" not in done.stdout.split()
