"""What answers take and cost is counted, and estimated where nobody counted."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from koi_lang.llm.accounting import usage_of, worst_case
from koi_lang.llm.cards import PRICES_AS_OF
from koi_lang.llm.messages import Message, Request, Usage
from koi_lang.llm.models import cost_usd
from tests.llm.flaky import REQUEST

FOUR_TOKENS = Request("12345678", (Message("user", "1234"), Message("assistant", "1234")))
MINI = "openai/gpt-4o-mini"


def test_models_inside_this_process_cost_nothing() -> None:
    """A rehearsal has a price, and it is zero."""
    assert (cost_usd("rehearsal/rehearsal", Usage(9, 9)), cost_usd("scripted", Usage(9, 9))) == (0.0, 0.0)


def test_missing_usage_is_estimated_and_marked() -> None:
    """Four characters count as a token, rounded up."""
    assert usage_of(FOUR_TOKENS, 5, None) == Usage(4, 2, estimated=True)


def test_told_usage_is_not_touched() -> None:
    """An estimate never replaces what a provider counted."""
    assert usage_of(REQUEST, 400, Usage(1, 2, 1)) == Usage(1, 2, 1)


def test_storing_costs_more_than_reading() -> None:
    """Anthropic takes a quarter more for tokens it is to remember, a tenth for those it remembers."""
    usage = Usage(1_000_000, 0, cached_tokens=500_000, stored_tokens=400_000)

    assert cost_usd("anthropic/claude-sonnet-4-6", usage) == pytest.approx(0.1 * 3 + 0.5 * 0.30 + 0.4 * 3.75)


@pytest.mark.parametrize(
    ("model", "max_tokens", "expected"),
    [
        ("gpt-4o-mini", 1000, (1004, (4 * 0.15 + 1000 * 0.60) / 1e6)),
        ("gpt-4o-mini", None, (8196, (4 * 0.15 + 8192 * 0.60) / 1e6)),
        ("unknown", None, (4100, None)),
        ("unknown", 10, (14, None)),
        ("scripted", None, (4100, 0.0)),
    ],
)
def test_the_worst_case(model: str, max_tokens: int | None, expected: tuple[int, float | None]) -> None:
    """The limit of the request counts, else that of the model within bounds, else a usual one."""
    tokens, usd = worst_case(replace(FOUR_TOKENS, max_tokens=max_tokens), model)

    assert (tokens, usd) == (expected[0], expected[1] if expected[1] is None else pytest.approx(expected[1]))


def test_prices_have_a_date() -> None:
    """Whoever shows a cost can say how old its prices are."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", PRICES_AS_OF)
