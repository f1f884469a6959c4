"""Requests are repeated while nothing was handed out, with a clock that never waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.errors import MissingKeyError
from koi_lang.llm.messages import Adapter
from koi_lang.llm.provider_errors import retry_after_s
from koi_lang.llm.retry import Pauses, retry
from tests.llm.flaky import REQUEST, Flaky, Listener, failing, heard, text_of

WHOLE_PAUSES = Pauses(spread=lambda: 1.0)


def retrying(model: Adapter, listener: Listener, **options: Any) -> Adapter:
    """A model with retries that waits the whole pause each time, on paper."""
    settings = {"pauses": WHOLE_PAUSES, "sleep": listener.sleep, "on_event": listener.on_event, **options}
    return retry(model, **settings)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529, None])
def test_what_may_pass_is_tried_again(status: int | None) -> None:
    """Rate limits, trouble of the provider and broken connections are repeated until an answer comes."""
    listener = Listener()
    model = retrying(Flaky(failing(status), failing(status), "answer"), listener)

    assert (text_of(model), listener.pauses_s) == ("answer", [2.0, 4.0])


@pytest.mark.parametrize("error", [failing(400), failing(401), failing(404), MissingKeyError("no key")])
def test_what_will_not_pass_is_not_repeated(error: Exception) -> None:
    """A request that is wrong, or a key that is not accepted, fails at once and unchanged."""
    listener, model = Listener(), Flaky(error, "never")

    assert heard(retrying(model, listener)) == ("", error)
    assert (len(model.requests), listener.pauses_s) == (1, [])


def test_after_text_nothing_is_repeated() -> None:
    """Once a piece was handed out the failure is the caller's, since repeating would say it twice."""
    failure, listener = failing(None), Listener()

    assert heard(retrying(Flaky(["half", failure], "whole"), listener)) == ("half", failure)
    assert (listener.pauses_s, listener.events) == ([], [])


def test_the_last_failure_says_how_often_it_was_tried() -> None:
    """Status, help and repeatability stay those of the failure."""
    model = Flaky(*[failing(529, "`maker` is overloaded")] * 3)

    _, error = heard(retrying(model, Listener()))

    assert error is not None
    assert (str(error), error.help, len(model.requests)) == ("`maker` is overloaded (3 attempts)", "Do something.", 3)
    assert (getattr(error, "status", None), getattr(error, "repeatable", None)) == (529, True)


def test_the_provider_decides_how_long_to_wait() -> None:
    """`retry-after` takes the place of the usual pause, also when it is shorter; by chance it is a little more."""
    listener = Listener()

    text_of(retrying(Flaky(failing(429, retry_after_s=7.5), failing(429, retry_after_s=0), "answer"), listener))

    assert listener.pauses_s == [8.5, 0]


def test_a_wait_longer_than_the_cap_fails_at_once() -> None:
    """Nobody waits an hour without a word: the message says what was asked for."""
    listener = Listener()

    _, error = heard(retrying(Flaky(failing(429, retry_after_s=3600), "answer"), listener))

    assert "it failed (a wait of 3600 s, longer than the 60 s allowed)" == str(error)
    assert "Try again in 3600 s" in str(error.help)
    assert listener.pauses_s == []


def test_pauses_double_up_to_the_cap_and_are_spread() -> None:
    """A pause lies between half and the whole of what is due."""
    due = [Pauses(spread=lambda: 1.0).after(attempt) for attempt in (1, 2, 3, 9)]
    shortest = Pauses(base_s=2, cap_s=60, spread=lambda: 0.0).after(3)

    assert (due, shortest) == ([2.0, 4.0, 8.0, 60.0], 4.0)


def test_the_listener_learns_of_every_pause_and_how_it_ended() -> None:
    """Surfaces can show that a run waits, for how long and why."""
    listener = Listener()

    text_of(retrying(Flaky(failing(500, "boom"), "answer"), listener))

    about = {"attempt": 1, "tries": 3, "delay_s": 2.0, "error": "boom"}
    assert listener.events == [
        ("retry_started", {"model": "maker/model", **about}),
        ("retry_ended", {"model": "maker/model", "ok": True, "attempt": 2}),
    ]


def test_giving_up_is_an_event() -> None:
    """A retry that is announced is also closed."""
    listener = Listener()

    heard(retrying(Flaky(failing(500, "boom"), failing(500, "boom")), listener, tries=2))

    ended = {"model": "maker/model", "ok": False, "attempt": 2, "error": "boom (2 attempts)"}
    assert listener.events[-1] == ("retry_ended", ended)


def test_one_try_changes_nothing() -> None:
    """With a single attempt the failure is handed on as it is."""
    failure = failing(500)

    assert heard(retrying(Flaky(failure), Listener(), tries=1)) == ("", failure)


def test_cancelling_ends_the_pause_at_once() -> None:
    """A run that is stopped does not wait for a provider any more."""
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def run(model: Flaky) -> int:
        asking = asyncio.ensure_future(anext(aiter(retry(model, sleep=sleep)(REQUEST))))
        await waiting.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return len(model.requests) if asking.cancelled() else -1

    assert asyncio.run(run(Flaky(failing(429), "never"))) == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "20", "retry-after-ms": "150"}, 0.15),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
    ],
)
def test_how_long_headers_ask_to_wait(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, milliseconds and dates are understood; anything else says nothing."""
    assert retry_after_s(headers) == expected
