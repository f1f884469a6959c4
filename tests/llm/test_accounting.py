"""What answers take and cost is counted, and estimated where nobody counted."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from koi_lang.llm.cards import PRICES_AS_OF
from koi_lang.llm.messages import Message, Request, Usage
from koi_lang.llm.models import cost_usd
from koi_lang.llm.usage import Candidate, Estimate, estimate, usage_of
from tests.llm.flaky import REQUEST

FOUR_TOKENS = Request("abcdefgh", (Message("user", "abcd"), Message("assistant", "abcd")))
MINI = "openai/gpt-4o-mini"


def test_models_inside_this_process_cost_nothing() -> None:
    """A rehearsal has a price, and it is zero."""
    assert (cost_usd("rehearsal/rehearsal", Usage(9, 9)), cost_usd("scripted", Usage(9, 9))) == (0.0, 0.0)


def test_missing_usage_is_estimated_and_marked() -> None:
    """A part of a token counts as one."""
    assert usage_of(FOUR_TOKENS, 1.25, None) == Usage(4, 2, estimated=True)


def test_told_usage_is_not_touched() -> None:
    """An estimate never replaces what a provider counted."""
    assert usage_of(REQUEST, 400, Usage(1, 2, 1)) == Usage(1, 2, 1)


def test_storing_costs_more_than_reading() -> None:
    """Anthropic takes a quarter more for tokens it is to remember, a tenth for those it remembers."""
    usage = Usage(1_000_000, 0, cached_tokens=500_000, stored_tokens=400_000)

    assert cost_usd("anthropic/claude-sonnet-4-6", usage) == pytest.approx(0.1 * 3 + 0.5 * 0.30 + 0.4 * 3.75)


MILLION = 1_000_000
READ = 4 + 3 * 4  # twelve characters, and the marks of a system text and two messages


def need(model: str, declared: int | None = None, **request: Any) -> Estimate:
    """The most that a request to a model takes which may be told a limit."""
    return estimate(replace(FOUR_TOKENS, **request), (Candidate(model, declared),))


@pytest.mark.parametrize(
    ("model", "declared", "asked", "answer", "limit"),
    [
        ("gpt-4o-mini", None, None, 8192, 8192),
        ("gpt-4o-mini", None, 1000, 1000, None),
        ("gpt-4o-mini", 20_000, None, 20_000, None),
        ("gpt-4o-mini", 100, 1000, 100, None),
        ("gpt-5", None, None, 32_768, 32_768),
        ("unknown", None, None, 4096, None),
        ("unknown", 100, None, 100, None),
        ("scripted", None, None, 4096, None),
    ],
)
def test_the_longest_answer(
    model: str, declared: int | None, asked: int | None, answer: int, limit: int | None
) -> None:
    """What is declared counts, or the request wants, else what is usual; a model without a card is told no limit."""
    found = need(model, declared, max_tokens=asked)

    assert (READ, answer, limit) == (found.input_tokens, found.answer_tokens, found.limit_for(found.answer_tokens))
    assert 80 == found.limit_for(80)


def test_the_highest_price() -> None:
    """It is reckoned as if the provider were paid to remember the request; a price that is not known is told."""
    known, unknown = need("gpt-4o-mini", 1000), need("mystery")

    assert pytest.approx((READ * 1.25 * 0.15 + 1000 * 0.60) / MILLION) == known.usd_with(1000)
    assert ("", "mystery", 0.0) == (known.unpriced, unknown.unpriced, unknown.usd_with(1000))


def test_all_that_may_answer_count() -> None:
    """Behind a fallback the dearest counts, and the longest answer."""
    found = estimate(FOUR_TOKENS, (Candidate("gpt-4o-mini", 500), Candidate("gpt-4.1", 200), Candidate("mystery", 50)))

    assert (500, "mystery") == (found.answer_tokens, found.unpriced)
    assert pytest.approx((READ * 1.25 * 2 + 500 * 8) / MILLION) == found.usd_with(500)


def test_the_form_of_an_answer_is_read_too() -> None:
    """A schema that goes along takes room as any text."""
    schema = {"type": "object", "title": "x" * 400}

    assert 100 < need("unknown", schema=schema).input_tokens - READ < 120


@pytest.mark.parametrize(("usd", "tokens"), [(0.0, -1), (0.000001, -1), (0.0001, 161), (1.0, 1_666_661)])
def test_how_long_an_answer_may_be_for_an_amount(usd: float, tokens: int) -> None:
    """What the request costs is taken off first."""
    assert tokens == need("gpt-4o-mini").tokens_for(usd)


def test_a_model_that_costs_nothing_may_answer_for_nothing() -> None:
    """A budget of $0 is no limit for it, but one that is overdrawn is."""
    free = need("scripted")

    assert (inf, -1) == (free.tokens_for(0.0), free.tokens_for(-0.1))


def test_prices_have_a_date() -> None:
    """Whoever shows a cost can say how old its prices are."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", PRICES_AS_OF)
