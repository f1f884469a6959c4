"""Providers that misbehave, through the real SDKs: a request recovers, or ends with one clear sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import ProviderError, RequestError
from koi_lang.llm.messages import Delta, Request, StreamEnd, TextDelta
from koi_lang.llm.retry import retry
from tests.llm.flaky import Listener
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import ALL, KEY, REQUEST, adapter, provider_of

SILENCE_S = 0.05
LONGEST_SENTENCE = 300
PAGE = f"<html><head><title>Bad gateway</title></head><body>{'<p>key ' + KEY + '</p>' * 200}</body></html>"
BUSY = {"error": {"message": f"busy {'very ' * 400} {KEY}", "type": "some_error"}}
FINE = Answer(pieces=("fine",))
# A million characters that say something new all the time: a model that repeats itself is not read to its end.
LONG = "".join(f"é{number}" for number in range(200_000))[:1_000_000]

# What the server does, and the start of the sentence when it does nothing else.
BEFORE_TEXT = {
    "429": (Answer(status=429, error=BUSY), "`{0}` asks to slow down: busy very"),
    "429 with a wait": (
        Answer(status=429, error=BUSY, headers={"retry-after": "7"}),
        "`{0}` asks to slow down: busy very",
    ),
    "500": (Answer(status=500, error=BUSY), "`{0}` has a problem of its own (status 500): busy very"),
    "500 without a word": (Answer(status=500), "`{0}` has a problem of its own (status 500): no reason given"),
    "529": (Answer(status=529, error=BUSY), "`{0}` is overloaded"),
    "a page": (Answer(status=502, page=PAGE), "`{0}` has a problem of its own (status 502): no reason given"),
    "a cut": (Answer(cut_after=0), "cannot reach `{0}` at `http://127.0.0.1:"),
    "a reset": (Answer(cut_after=0, reset=True), "cannot reach `{0}` at `http://127.0.0.1:"),
    "half an event": (
        Answer(pieces=(), raw='event: message_delta\ndata: {"half": \n\n'),
        "`{0}` sent an answer that is not well formed",
    ),
    "silence": (Answer(silent=True), "`{0}` sent nothing for 0.05 s"),
    "a tool call": (Answer(calls_tool=True), "`{0}` answered with a tool call instead of text"),
}
AFTER_TEXT = {
    "a cut": (Answer(pieces=tuple("abcdefgh"), cut_after=6), "`{0}` broke off its answer before it was complete"),
    "a reset": (
        Answer(pieces=tuple("abcdefgh"), cut_after=6, reset=True, pause=True),
        "`{0}` broke off its answer before it was complete",
    ),
    "half an event": (
        Answer(raw='event: message_delta\ndata: {"half": \n\n'),
        "`{0}` sent an answer that is not well formed",
    ),
    "silence": (Answer(pause=True), "`{0}` sent nothing for 0.05 s"),
}
FOR_GOOD = {
    "401": (Answer(status=401, error=BUSY), "`{0}` does not accept the key in"),
    "a page for 404": (Answer(status=404, page=PAGE), "`{0}` has no path at `http://127.0.0.1:"),
    "a page in place of an answer": (Answer(page=PAGE), "`{0}` sent a page for people instead of an answer"),
    "a long wait": (
        Answer(status=429, headers={"retry-after": "86400"}),
        "`{0}` asks to slow down: no reason given (a wait of 86400 s, longer than the 60 s allowed)",
    ),
    "a refusal": (Answer(refusal="I would rather not."), "the model at `{0}` declined to answer"),
    "no room": (Answer(pieces=(), stop_reason="length"), "the answer of `{0}` reached its limit of tokens"),
}
DELIVERED = {
    "no usage": (Answer(usage=None), "ok"),
    "half an object": (Answer(pieces=('{"intent": "pri',)), '{"intent": "pri'),
    "10 MB": (Answer(pieces=(LONG,) * 10), LONG * 10),
    "very small pieces": (Answer(pieces=("é",) * 2_000), "é" * 2_000),
}


def faults(table: dict[str, Any]) -> pytest.MarkDecorator:
    """A test for each row of a table and each SDK."""
    return pytest.mark.parametrize("fault", list(table))


async def ask(
    kind: str, answers: Sequence[Answer], *, silence_s: float = 5.0, tries: int = 3, request: Request = REQUEST
) -> tuple[list[Delta], RequestError | None]:
    """The deltas of one request with retries, and the error at its end; the server goes on after the first delta.

    Where actions are wanted, the call of a tool is one; so it is a fault only where a text is.
    """
    deltas: list[Delta] = []
    request = replace(request, json=request.json and not answers[0].calls_tool)
    async with ModelServer(answers) as server:
        model = retry(adapter(kind, server.url, silence_s=silence_s), tries=tries, sleep=Listener().sleep)
        try:
            async for delta in model(request):
                deltas.append(delta)
                if answers[0].reset:
                    server.go_on.set()
        except RequestError as error:
            return deltas, error
        finally:
            await model.aclose()
    return deltas, None


def asked(kind: str, *answers: Answer, silence_s: float = 5.0) -> tuple[str, RequestError | None]:
    """The text of one request with retries, and the error at its end."""
    is_silent = answers[0].silent or (answers[0].pause and not answers[0].reset)
    deltas, error = asyncio.run(ask(kind, answers, silence_s=SILENCE_S if is_silent else silence_s))
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), error


def check_sentence(error: ProviderError | None, start: str) -> None:
    """The error begins so, is one line for a person, and shows neither the key nor a page."""
    shown = f"{error} {error and error.help} {error and error.__cause__}"

    assert str(error).startswith(start)
    assert len(str(error)) < LONGEST_SENTENCE
    assert [unwanted for unwanted in (KEY, "<p>", "html", "\n") if unwanted in shown] == []


@pytest.mark.sampled(10)
@ALL
@faults(BEFORE_TEXT)
def test_a_fault_before_any_text_is_survived(kind: str, fault: str) -> None:
    """Whatever happens once, the request is repeated and answered."""
    assert asked(kind, BEFORE_TEXT[fault][0], FINE) == ("fine", None)


@pytest.mark.sampled(10)
@ALL
@faults(BEFORE_TEXT)
def test_a_fault_that_stays_is_told_in_one_sentence(kind: str, fault: str) -> None:
    """After three attempts the error says what is wrong, and how often it was tried."""
    answer, start = BEFORE_TEXT[fault]

    text, error = asked(kind, answer)

    check_sentence(error, start.format(provider_of(kind)))
    assert (text, str(error)[-len("(3 attempts)") :]) == ("", "(3 attempts)")


@pytest.mark.sampled(5)
@ALL
@faults(AFTER_TEXT)
def test_a_fault_after_text_is_told_and_not_repeated(kind: str, fault: str) -> None:
    """What was handed out stays; the next answer is not put behind it."""
    answer, start = AFTER_TEXT[fault]

    text, error = asked(kind, answer, FINE)

    check_sentence(error, start.format(provider_of(kind)))
    assert text
    assert "fine" not in text


@pytest.mark.sampled(7)
@ALL
@faults(FOR_GOOD)
def test_what_will_not_change_is_told_at_once(kind: str, fault: str) -> None:
    """A request that would fail again is not repeated."""
    answer, start = FOR_GOOD[fault]

    text, error = asked(kind, answer, FINE)

    check_sentence(error, start.format(provider_of(kind)))
    assert text == ""


@pytest.mark.sampled(5)
@ALL
@faults(DELIVERED)
def test_what_is_odd_but_whole_is_delivered(kind: str, fault: str) -> None:
    """Length, broken JSON and missing counts are no business of the transport."""
    answer, expected = DELIVERED[fault]

    text, error = asked(kind, answer, silence_s=30.0)

    assert (text == expected, error) == (True, None)


@ALL
def test_missing_usage_is_said_to_be_missing(kind: str) -> None:
    """No count is invented where the provider sent none."""
    deltas, _ = asyncio.run(ask(kind, [Answer(usage=None)], silence_s=5.0))

    assert [delta.usage for delta in deltas if isinstance(delta, StreamEnd)] == [None]


def test_a_refusal_is_quoted() -> None:
    """OpenAI's models say why they decline; the reason is part of the sentence."""
    _, error = asked("openai", Answer(refusal="I would rather not."))

    assert str(error) == "the model at `openai` declined to answer: I would rather not."
