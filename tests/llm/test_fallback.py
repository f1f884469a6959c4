"""The next model answers where one cannot."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from koi_lang.errors import MissingKeyError, ProviderError, RequestError
from koi_lang.llm.fallback import fallback
from koi_lang.llm.messages import StreamEnd, TextDelta
from koi_lang.llm.retry import retry
from tests.llm.flaky import REQUEST, Flaky, Listener, deltas_of, failing, heard, text_of


@pytest.mark.parametrize("error", [failing(401), failing(404), failing(429), failing(None), MissingKeyError("no key")])
def test_the_next_model_answers(error: Exception) -> None:
    """Whatever the first model's trouble is, unless the request itself is wrong, the second is asked."""
    listener = Listener()
    first, second = Flaky(error, name="a/one"), Flaky("answer", name="b/two")
    model = fallback([first, second], listener.on_event)

    assert text_of(model) == "answer"
    assert listener.events == [("model_replaced", {"model": "a/one", "by": "b/two", "error": str(error)})]


def test_a_wrong_request_is_not_taken_elsewhere() -> None:
    """A request that one provider rejects is a mistake to be told, not to be hidden."""
    failure, second = failing(400), Flaky("never")

    assert heard(fallback([Flaky(failure), second])) == ("", failure)
    assert second.requests == []


def test_after_text_no_other_model_steps_in() -> None:
    """Half an answer of one model is not completed by another."""
    failure, second = failing(None), Flaky("never")

    assert heard(fallback([Flaky(["half", failure]), second])) == ("half", failure)
    assert second.requests == []


def test_the_last_error_names_all_models() -> None:
    """Nobody has to guess what was tried; help and status are those of the last failure."""
    models = [Flaky(failing(500), name="a/one"), Flaky(failing(529, "`b` is overloaded"), name="b/two")]

    _, error = heard(fallback(models))

    assert str(error) == "none of `a/one`, `b/two` answers; the last: `b` is overloaded"
    assert (error and error.help, getattr(error, "status", None)) == ("Do something.", 529)


def test_errors_that_are_no_failed_requests_are_named_too() -> None:
    """A model inside this process fails in its own way."""
    _, error = heard(fallback([Flaky(failing(500), name="a/one"), Flaky(ProviderError("no answers left"))]))

    assert str(error) == "none of `a/one`, `maker/model` answers; the last: no answers left"


def test_the_end_says_who_answered() -> None:
    """Whoever keeps accounts can tell the models apart; the first needs no mention."""
    first, second = Flaky("x", failing(500), name="a/one"), Flaky("y", name="b/two")
    model = fallback([first, second])

    assert deltas_of(model) == [TextDelta("x"), StreamEnd(None, "stop")]
    assert deltas_of(model) == [TextDelta("y"), StreamEnd(None, "stop", answered_by="b/two")]


def test_a_named_model_is_asked_of_the_first_provider_only() -> None:
    """The others answer with their own model."""
    first, second = Flaky(failing(500)), Flaky("answer")

    text_of(fallback([first, second]), replace(REQUEST, model="special"))

    assert (first.requests[0].model, second.requests[0].model) == ("special", "")


@pytest.mark.parametrize(
    ("count", "asked"), [(1, [3]), (2, [3, 1]), (3, [2, 1, 1]), (4, [1, 1, 1, 1]), (5, [1, 1, 1, 1, 0])]
)
def test_at_most_four_requests_are_made_of_all_models(count: int, asked: list[int]) -> None:
    """One is left for each model that follows, as far as there are as many; the sentence names who was asked."""
    models = [Flaky(*[failing(503, "down")] * 4, name=f"a/m{number}") for number in range(count)]
    layered = [retry(model, sleep=Listener().sleep) for model in models]

    _, error = heard(fallback(layered))

    assert asked == [len(model.requests) for model in models]
    assert isinstance(error, RequestError)
    assert sum(asked) == error.attempts
    assert [f"`a/m{number}`" in str(error) for number in range(count)] == [count > 1 and n > 0 for n in asked]


def test_requests_that_were_made_before_count() -> None:
    """A turn that has made three leaves one, and the model that gets it is told how many there were."""
    models = [Flaky(failing(503, "down"), name="a/one"), Flaky("never", name="b/two")]

    _, error = heard(fallback(models), replace(REQUEST, attempts=3))

    assert [1, 0] == [len(model.requests) for model in models]
    assert (3, 4) == (models[0].requests[0].attempts, models[0].requests[0].most_requests)
    assert "none of `a/one` answers" in str(error)


def test_what_cost_no_request_leaves_room_for_others() -> None:
    """A missing key is found out before anything is sent."""
    second = Flaky(failing(503), failing(503), failing(503), name="b/two")
    model = fallback([Flaky(MissingKeyError("no key"), name="a/one"), retry(second, sleep=Listener().sleep)])

    heard(model)

    assert 3 == len(second.requests)


async def _close(models: list[Flaky]) -> list[int]:
    await fallback(models).aclose()
    return [model.closed for model in models]


def test_all_models_are_closed() -> None:
    """Also those that were never asked."""
    assert asyncio.run(_close([Flaky(), Flaky()])) == [1, 1]
