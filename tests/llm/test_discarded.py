"""What an answer took that nobody can use travels with its failure, and past it where another attempt follows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import RequestError
from koi_lang.llm.answer_cache import with_answer_cache
from koi_lang.llm.fallback import fallback
from koi_lang.llm.messages import Discarded, StreamEnd, TextDelta, Usage
from koi_lang.llm.retry import retry
from tests.llm.flaky import REQUEST, Flaky, Listener, deltas_of, failing, heard
from tests.llm.server import Answer
from tests.llm.test_adapters import ALL, adapter
from tests.llm.test_faults import FINE, ask

TOOK = (50_000, 300, 0)
USED = Usage(50_000, 300)
USELESS = {
    "a tool call": Answer(calls_tool=True, usage=TOOK),
    "no room": Answer(pieces=(), stop_reason="length", usage=TOOK),
    "a refusal": Answer(refusal="No.", usage=TOOK),
}


def dear(number: int) -> RequestError:
    """A failure that took so many tokens."""
    failure = failing(None)
    failure.discarded = Discarded(Usage(number, 0))
    return failure


def failure_of(kind: str, answer: Answer) -> Any:
    """What the failure of an answer says it took, where it is asked for once."""
    _, error = asyncio.run(ask(kind, [answer], tries=1))
    return error and error.discarded


@ALL
@pytest.mark.parametrize("what", USELESS)
def test_a_failure_says_what_it_took(kind: str, what: str) -> None:
    """Whatever makes an answer useless, its provider counts it as any other."""
    assert Discarded(USED) == failure_of(kind, USELESS[what])


@ALL
def test_what_is_tried_again_is_told_before(kind: str) -> None:
    """Two attempts that were thrown away stand before the answer."""
    call = USELESS["a tool call"]
    deltas, error = asyncio.run(ask(kind, [call, call, FINE]))

    assert [Discarded(USED), Discarded(USED), TextDelta("fine")] == deltas[:3]
    assert error is None


@ALL
def test_the_last_attempt_is_told_once(kind: str) -> None:
    """Of three attempts in vain two are told, and the failure carries the third."""
    deltas, error = asyncio.run(ask(kind, [USELESS["a tool call"]]))

    assert [Discarded(USED)] * 2 == deltas
    assert error is not None
    assert Discarded(USED) == error.discarded


@ALL
@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_rejected_request_takes_nothing(kind: str, status: int) -> None:
    """Nobody is charged for a request that was not carried out."""
    assert None is failure_of(kind, Answer(status=status))


@ALL
@pytest.mark.parametrize("answer", [Answer(cut_after=0), Answer(silent=True)])
def test_a_request_that_was_read_is_counted(kind: str, answer: Answer) -> None:
    """Whoever opened a stream, or kept silent, has read the request, also where no part of an answer came."""
    _, error = asyncio.run(ask(kind, [answer], tries=1, silence_s=0.05))

    assert error is not None
    assert error.discarded is not None
    assert (8, True) == (error.discarded.usage.input_tokens, error.discarded.usage.estimated)


@ALL
def test_a_page_takes_nothing(kind: str) -> None:
    """What is no stream of events does not come from a model."""
    assert None is failure_of(kind, Answer(page="<html>Sign in</html>"))


@ALL
def test_an_answer_that_nobody_counts_is_estimated(kind: str) -> None:
    """Without a count, what was asked and what had arrived is taken; of an answer without room, all its room."""
    short = Answer(pieces=(), stop_reason="length", usage=None)
    request = replace(REQUEST, max_tokens=700)

    _, error = asyncio.run(ask(kind, [short], tries=1, request=request))

    assert error is not None
    assert Discarded(Usage(8, 700, estimated=True)) == error.discarded


def test_what_is_broken_off_is_counted_as_far_as_it_came() -> None:
    """Anthropic counts the request at the beginning; what had been written is estimated."""
    cut = Answer(pieces=("x" * 400, "y" * 400), cut_after=3, usage=TOOK)

    assert Discarded(Usage(50_000, 100, estimated=True)) == failure_of("anthropic", cut)


def test_another_model_is_told_whose_attempt_it_was() -> None:
    """A fallback says which model took what; the failure of the last says so, too."""
    models = [Flaky(dear(1), name="a/one"), Flaky(dear(2), name="b/two"), Flaky("fine", name="c/three")]

    assert [Discarded(Usage(1, 0)), Discarded(Usage(2, 0), "b/two")] == deltas_of(fallback(models))[:2]
    _, error = heard(fallback([Flaky(dear(1), name="a/one"), Flaky(dear(2), name="b/two")]))
    assert isinstance(error, RequestError)
    assert Discarded(Usage(2, 0), "b/two") == error.discarded


def test_a_discarded_attempt_is_no_beginning() -> None:
    """After attempts in vain another model may still be asked, and the answer kept."""
    flaky = Flaky(dear(1), dear(1), dear(1), name="a/one")
    model = fallback([retry(flaky, sleep=Listener().sleep), Flaky("fine", name="b/two")])

    assert [Discarded, Discarded, Discarded, TextDelta, StreamEnd] == [type(delta) for delta in deltas_of(model)]


def test_a_kept_answer_takes_nothing_again(tmp_path: Any) -> None:
    """What an answer was tried before is not part of what the cache gives again."""
    flaky = Flaky(dear(1), "fine")
    kept = with_answer_cache(
        retry(flaky, sleep=Listener().sleep), tmp_path, adapter("openai", "http://127.0.0.1:9").connection
    )

    first, second = deltas_of(kept), deltas_of(kept)

    assert [Discarded, TextDelta, StreamEnd] == [type(delta) for delta in first]
    assert [TextDelta, StreamEnd] == [type(delta) for delta in second]
