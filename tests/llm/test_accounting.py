"""What answers take and cost is counted, and estimated where nobody counted."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from koi_lang.llm.accounting import Ledger, Tally, accounted, usage_of, worst_case
from koi_lang.llm.fallback import fallback
from koi_lang.llm.layers import opened
from koi_lang.llm.messages import Finished, Message, Request, TextDelta, Usage
from koi_lang.llm.models import PRICES_AS_OF, cost_usd
from tests.llm.flaky import REQUEST, Flaky, deltas_of, failing, heard, text_of

FOUR_TOKENS = Request("12345678", (Message("user", "1234"), Message("assistant", "1234")))
MINI = "openai/gpt-4o-mini"


def test_every_answer_is_entered() -> None:
    """Tokens and cost add up, by model and in total."""
    ledger = Ledger()
    model = accounted(Flaky("a", "b", name=MINI, usage=Usage(1_000_000, 100_000, 400_000)), ledger)

    text_of(model)
    text_of(model)

    assert list(ledger.models) == [MINI]
    assert replace(ledger.total, usd=0) == Tally(2, 2_000_000, 200_000, 800_000)
    assert ledger.total.usd == pytest.approx(2 * (0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.60))


def test_an_unknown_price_is_not_nothing() -> None:
    """What is not known is counted as such; the known part of the cost stays."""
    ledger = Ledger()
    ledger.enter(MINI, Usage(1_000_000, 0))
    ledger.enter("someone/else", Usage(10, 10))

    assert (ledger.total.requests, ledger.total.usd, ledger.total.unpriced) == (2, 0.15, 1)


def test_models_inside_this_process_cost_nothing() -> None:
    """A rehearsal has a price, and it is zero."""
    assert (cost_usd("rehearsal/rehearsal", Usage(9, 9)), cost_usd("scripted", Usage(9, 9))) == (0.0, 0.0)


def test_missing_usage_is_estimated_and_marked() -> None:
    """Four characters count as a token, rounded up; the end of the answer carries the estimate."""
    ledger = Ledger()

    end = deltas_of(accounted(Flaky("12345"), ledger), FOUR_TOKENS)[-1]

    assert end == Finished(Usage(4, 2, estimated=True), "stop")
    assert ledger.total == Tally(1, 4, 2, unpriced=1, estimated=1)


def test_told_usage_is_not_touched() -> None:
    """An estimate never replaces what a provider counted."""
    assert usage_of(REQUEST, 400, Usage(1, 2, 1)) == Usage(1, 2, 1)


def test_an_answer_that_breaks_off_is_paid_for() -> None:
    """What a provider had written until then counts, estimated; a request that failed before does not."""
    ledger = Ledger()
    model = accounted(Flaky(failing(500), ["12345678", failing(None)]), ledger)

    heard(model, FOUR_TOKENS)
    heard(model, FOUR_TOKENS)

    assert ledger.total == Tally(1, 4, 2, unpriced=1, estimated=1)


def test_an_answer_nobody_wants_any_more_is_paid_for() -> None:
    """Stopping to read is no way to save money."""
    ledger = Ledger()

    async def first_piece() -> None:
        async with opened(accounted(Flaky(["1234", "5678"]), ledger), FOUR_TOKENS) as stream:
            await anext(stream)

    asyncio.run(first_piece())

    assert ledger.total == Tally(1, 4, 1, unpriced=1, estimated=1)


def test_the_model_that_answered_is_charged() -> None:
    """With several models the ledger follows the one that stepped in."""
    ledger, usage = Ledger(), Usage(1_000_000, 0)
    models = [Flaky(failing(500), name="a/one"), Flaky("x", name=MINI, usage=usage)]

    text_of(accounted(fallback(models), ledger))

    assert ledger.models == {MINI: Tally(1, 1_000_000, usd=0.15)}


def test_replayed_answers_cost_nothing() -> None:
    """They are counted apart from all others."""
    ledger = Ledger()
    ledger.enter(MINI, Usage(1_000_000, 5), replayed=True)

    assert ledger.total == Tally(replayed=1)


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


def test_text_is_handed_on_unchanged() -> None:
    """Accounts are kept beside the answer, not in it."""
    deltas = deltas_of(accounted(Flaky(["a", "b"], usage=Usage(1, 1)), Ledger()))

    assert deltas == [TextDelta("a"), TextDelta("b"), Finished(Usage(1, 1), "stop")]
