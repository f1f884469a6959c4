"""What the models of a run took, as its events, its journal, the terminal and sessions tell it."""

from __future__ import annotations

import pytest

from koi_lang.cli.ui.reporters import CostMeter
from koi_lang.events import AnswerDiscarded, Event, EventData, LinePrinted, ModelAnswered, TextsEmbedded
from koi_lang.runtime.journal.entries import entry_of
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.sessions.session import Statistics

TOKENS = {"input": 10, "output": 3, "cached": 4}
PAID = (
    ModelAnswered("acme/one", TOKENS, 0.25, "stop"),
    AnswerDiscarded("acme/one", TOKENS, None, estimated=True),
    TextsEmbedded("acme/embed", {"input": 7, "output": 0, "cached": 0}, 0.5),
)
UNPAID = (LinePrinted("hi"), ModelAnswered("acme/one", TOKENS, 0.0, "stop", replayed=True))


def events(*data: EventData, recalled: bool = False) -> list[Event]:
    """Events of a run."""
    return [Event(n, 5.0, "r", "Ada", each, (f"model#{n}",), recalled) for n, each in enumerate(data, 1)]


def totals_of(*told: Event) -> list[UsageTotals]:
    """What all who count make of some events."""
    totals, bill, statistics = UsageTotals(), CostMeter(), Statistics()
    for event in told:
        totals.add(event)
        bill(event)
        statistics(event)
    return [totals, UsageTotals.of(entry_of(event, event.seq) for event in told), bill.usage, statistics.usage]


def test_all_who_count_agree() -> None:
    """Answers, attempts that came to nothing and rankings count; what came from a cache, or is unpaid, does not."""
    expected = UsageTotals(3, 33, 0.75, True)

    assert [expected] * 4 == totals_of(*events(*PAID, *UNPAID))


def test_what_is_recalled_was_counted_before() -> None:
    """An earlier part of the run, or the run that this one is a branch of, has paid for it."""
    assert [UsageTotals()] * 4 == totals_of(*events(*PAID, recalled=True))


def test_the_time_leaves_the_pause_out() -> None:
    """What the terminal tells of a run that goes on counts from there, and not from what happened a day ago."""
    bill = CostMeter()
    for ts, recalled in ((5.0, True), (86_400.0, True), (90_000.0, False), (90_002.5, False)):
        bill(Event(1, ts, "r", "Ada", LinePrinted("hi"), recalled=recalled))

    assert 2.5 == bill.seconds


@pytest.mark.parametrize("tokens", [None, [], {"input": None}, {"output": "3"}])
def test_a_journal_from_elsewhere_is_counted_as_far_as_it_can_be_read(tokens: object) -> None:
    """Tokens that are no numbers count as none."""
    (entry,) = (entry_of(event, 1) for event in events(ModelAnswered("m", tokens, None)))  # type: ignore[arg-type]

    assert UsageTotals(1, 0, 0.0, True) == UsageTotals.of([entry])


def test_models_of_this_process_have_no_price() -> None:
    """What they answer counts, costs nothing, and is not billed."""
    totals, journal, bill, statistics = totals_of(*events(ModelAnswered("scripted", TOKENS, None)))

    assert [UsageTotals(1, 13)] * 3 == [totals, journal, statistics]
    assert UsageTotals() == bill
