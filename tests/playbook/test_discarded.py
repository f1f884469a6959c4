"""Attempts that nobody is given are paid for: counted in the budget, the bill and the journal, once and for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from koi_lang.cli.ui.reporters import CostMeter
from koi_lang.errors import RequestError
from koi_lang.events import PAID, AnswerDiscarded, ModelAnswered
from koi_lang.llm.fallback import fallback
from koi_lang.llm.messages import Discarded, Request, Usage
from koi_lang.llm.retry import retry
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.budget.payment import tokens_in
from koi_lang.runtime.journal.entries import JournalEntry
from tests.journal.again import Recorder, Tape
from tests.llm.flaky import Flaky, Listener
from tests.playbook.playing import Played, Player, Voice, act, done, solo

TOOK = Usage(50_000, 300)
ANSWER = Usage(500, 18)


def in_vain(usage: Usage = TOOK) -> RequestError:
    """A failure of an attempt that was paid for."""
    failure = RequestError("it answered with a tool call instead of text")
    failure.discarded = Discarded(usage)
    return failure


def trying(*steps: Any, name: str = "a/gpt-4o-mini") -> Any:
    """A model that is asked three times at the most for each answer."""
    flaky = Flaky(*steps, name=name, usage=ANSWER)
    model: Any = retry(flaky, sleep=Listener().sleep)
    model.requests = flaky.requests
    return model


def discarded(played: Played) -> list[tuple[int, str]]:
    """The tokens of discarded attempts, and whose they were."""
    events = [event.fields for event in played.events if event.type == AnswerDiscarded.type]
    return [(data["tokens"]["input"] + data["tokens"]["output"], data["model"]) for data in events]


def billed(played: Played) -> int:
    """The tokens of the bill."""
    bill = CostMeter()
    for event in played.events:
        bill(event)
    return bill.usage.tokens


def test_attempts_before_an_answer_are_paid_for(play: Player) -> None:
    """Two attempts of 50,300 tokens and an answer of 518 make a bill of 101,118, and count for the budget."""
    played = play(solo(), trying(in_vain(), in_vain(), json.dumps(done(ok=True))), limits={"usd": 9})

    assert ({"ok": True}, 101_118) == (played.result, billed(played))
    assert 101_118 == played.run.spending.tokens
    assert [(50_300, "gpt-4o-mini")] * 2 == discarded(played)


def test_attempts_that_lead_to_no_answer_are_paid_for(play: Player) -> None:
    """A call that fails after three attempts costs all three, and nothing is tried after them."""
    played = play(solo(), trying(*[in_vain()] * 9))

    assert (3 * 50_300, 3) == (billed(played), len(discarded(played)))
    assert "it answered with a tool call" in played.told


def test_each_model_has_its_own_price(play: Player) -> None:
    """What a first model took in vain is not charged with the price of the one that answered."""
    first, second = Flaky(in_vain(), name="a/gpt-4o-mini"), Flaky(json.dumps(done()), name="b/gpt-4.1", usage=ANSWER)
    model: Any = fallback([first, second])
    model.requests = []
    played = play(solo(), model)

    assert [(50_300, "gpt-4o-mini")] == discarded(played)
    told = [event.fields["usd"] for event in played.events if event.type in (AnswerDiscarded.type, "model_answered")]
    assert pytest.approx([50_000 * 0.15e-6 + 300 * 0.6e-6, 500 * 2e-6 + 18 * 8e-6]) == told


def test_an_answer_that_is_broken_off_is_counted_as_told(play: Player) -> None:
    """Where the provider counted what it broke off, nothing is estimated from the text that had arrived."""
    half = [json.dumps(act("print", message="half")), in_vain()]
    played = play(solo(), trying(half, json.dumps(done())))
    (cut,) = [event.fields for event in played.events if event.fields.get("stop") == "cut"]

    assert (["half"], 50_300) == ([*played.printed], cut["tokens"]["input"] + cut["tokens"]["output"])
    assert [] == discarded(played)


def test_a_request_that_is_given_up_is_paid_for(play: Player) -> None:
    """A model that is cancelled while it thinks has read the request."""

    async def speak(request: Request) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    played = play(solo(more="budget { time: 1500ms }"), Voice(speak))
    (data,) = [event.fields for event in played.events if event.type == AnswerDiscarded.type]

    assert (True, 0) == (data["estimated"], data["tokens"]["output"])
    assert data["tokens"]["input"] == played.run.spending.tokens > 100


def test_a_run_that_goes_on_counts_them_once(play: Player) -> None:
    """Cut anywhere and resumed, the journal holds the attempt once, and the budget has counted what the journal has."""
    said = [json.dumps(act("print", message="a")), json.dumps(done())]
    whole = Recorder(play, solo(), partial(trying, in_vain(), *said)).run()
    for n in range(1, len(whole.entries)):
        before = [entry.kind for entry in whole.entries[:n]]
        left = [*[in_vain()] * (AnswerDiscarded.type not in before), *said[before.count("model_answered") :]]
        tape = Recorder(play, solo(), partial(trying, *left)).again(whole.entries[:n])
        paid = [entry for entry in tape.entries if entry.kind in (AnswerDiscarded.type, "model_answered")]
        tokens = [entry.data["tokens"]["input"] + entry.data["tokens"]["output"] for entry in paid]

        assert (sum(tokens), 1) == (tape.played.run.spending.tokens, tokens.count(50_300))


def paid_in(tape: Tape) -> list[tuple[str, bool]]:
    """What a journal tells of requests, and whether that is estimated."""
    return [(entry.kind, "estimated" in entry.data) for entry in tape.entries if entry.kind in PAID]


def until_asked(tape: Tape) -> list[JournalEntry]:
    """The entries up to the last request, as the journal of a process that was killed there."""
    last = max(n for n, entry in enumerate(tape.entries) if entry.kind == "model_asked")
    return [
        *tape.entries[: last + 1],
        *(entry for entry in tape.entries[last + 1 :] if entry.kind == AnswerDiscarded.type),
    ]


def test_a_request_that_was_under_way_when_the_process_was_killed_is_paid_for(play: Player) -> None:
    """It is made again, so it is paid for twice, and three times after another kill; the sums agree."""
    recorder = Recorder(play, solo(), partial(trying, json.dumps(done())))
    first = recorder.run()
    second = recorder.again(until_asked(first))
    third = recorder.again(until_asked(second))

    assert [(AnswerDiscarded.type, True), (ModelAnswered.type, False)] == paid_in(second)
    assert [(AnswerDiscarded.type, True)] * 2 + [(ModelAnswered.type, False)] == paid_in(third)
    tokens = sum(tokens_in(entry.data) for entry in third.entries if entry.kind in PAID)
    assert (tokens, 3) == (third.played.run.spending.tokens, third.played.run.spending.requests)


def test_a_request_that_was_given_up_is_not_paid_for_again(play: Player) -> None:
    """A run that ended properly has counted what was under way, or the provider had refused it."""
    refused = RequestError("slow down", status=400)
    first = Recorder(play, solo(), partial(trying, refused)).run()
    second = Recorder(play, solo(), partial(trying, json.dumps(done()))).again(first.entries)

    assert ([], [(ModelAnswered.type, False)]) == (paid_in(first), paid_in(second))


def test_an_attempt_of_an_earlier_part_does_not_take_the_room_of_the_next(play: Player) -> None:
    """What is on its way is reserved also where an attempt before it was counted again."""
    said = [in_vain(Usage(500, 3)), json.dumps(done())]
    first = Recorder(play, solo(more="budget { tokens: 50000 }"), partial(trying, *said)).run()
    (n,) = [n for n, entry in enumerate(first.entries) if entry.kind == AnswerDiscarded.type]
    open: list[int] = []

    async def speak(request: Request) -> AsyncIterator[str]:
        payer = current_spending()
        assert payer is not None
        open.extend(len(each.open) for each in payer.payers())
        yield json.dumps(done())

    again = Recorder(play, solo(more="budget { tokens: 50000 }"), lambda: Voice(speak, name="gpt-4o-mini")).again(
        first.entries[: n + 1]
    )

    assert ({}, [1, 1]) == (again.played.result, open)
