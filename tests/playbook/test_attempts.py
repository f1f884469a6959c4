"""Attempts at one answer are counted once, from the playbook down to the requests of the SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.program import declarations
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.llm.flaky import Listener
from tests.llm.server import Answer, ModelServer
from tests.playbook.playing import Player, solo
from tests.running import RecordingHost

BUSY = Answer(status=503, error={"error": {"message": "down"}})
CUT = Answer(pieces=("{", '"intent"'), cut_after=2)
RETURN = '{"actionType": "direct", "intent": "return", "data": 7}'


def carried_out(play: Player, provider: str, *answers: Answer | str, models: int = 1) -> tuple[Any, int]:
    """What a playbook gives, or fails with, and how many requests its models were sent."""
    module = play.load(solo("execute"))

    async def run() -> tuple[Any, int]:
        async with ModelServer(answers) as server:
            base_url = f"{server.url}/v1" if provider == "openai" else server.url
            option = {"provider": provider, "model": "m", "base_url": base_url}
            options = {**option, "fallback": [{**option, "model": f"m{number}"} for number in range(1, models)]}
            around = ModelEnvironment(sleep=Listener().sleep)
            services = Services(
                connect=lambda llm: connect(options, lambda name: "k", around=around),
                host=RecordingHost(),
                teams=lambda: declarations.teams_of(module),
            )
            try:
                async with Run(services) as going:
                    return await going.call(module.Main, "go", {}), len(server.requests)
            except KoiError as error:
                return error.message, len(server.requests)

    return asyncio.run(run())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((BUSY,), "has a problem of its own (status 503): down (3 attempts)"),
        ((CUT,), "broke off its answer before it was complete (3 attempts)"),
        ((BUSY, CUT), "broke off its answer before it was complete (3 attempts)"),
        ((CUT, BUSY), "has a problem of its own (status 503): down (3 attempts)"),
        ((BUSY, BUSY, CUT, RETURN), "broke off its answer before it was complete (3 attempts)"),
    ],
)
def test_three_attempts_are_three_requests(play: Player, provider: str, answers: tuple[Any, ...], told: str) -> None:
    """Neither what fails before an answer nor what breaks off in it gives an answer more attempts."""
    assert (f"`{provider}` {told}", 3) == carried_out(play, provider, *answers)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("models", [2, 3, 5])
@pytest.mark.parametrize("answers", [(BUSY,), (CUT, BUSY), (BUSY, CUT, BUSY)])
def test_several_models_are_sent_four_requests_in_all(play: Player, models: int, answers: tuple[Any, ...]) -> None:
    """Whoever answers, and whether it is before an answer or in it that they fail."""
    told, requests = carried_out(play, "openai", *answers, models=models)

    assert 4 == requests
    assert "down" in told


def test_a_wait_that_is_too_long_ends_at_once(play: Player) -> None:
    """A provider that asks to come back in an hour is not asked again in the same second."""
    later = Answer(status=429, error={"error": {"message": "slow"}}, headers={"retry-after": "3600"})
    told = "`openai` asks to slow down: slow (a wait of 3600 s, longer than the 60 s allowed)"

    assert (told, 1) == carried_out(play, "openai", later)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_fault_in_the_middle_of_each_answer_is_named(play: Player, provider: str) -> None:
    """A model that says the same again since its answers break off behind an action does not go round in circles."""
    action = '{"actionType": "direct", "intent": "print", "message": "a"}'
    after_action = Answer(pieces=(action, ' {"intent"', ' : "x"'), cut_after=4 if provider == "anthropic" else 2)
    fault = f"`{provider}` broke off its answer before it was complete"
    told = f"`Main.go` got 4 answers in a row that broke off after the same `print`; the last: {fault}"

    assert told == carried_out(play, provider, after_action)[0]


@pytest.mark.parametrize("answers", [(BUSY, RETURN), (CUT, RETURN), (BUSY, CUT, RETURN), (CUT, BUSY, RETURN)])
def test_what_passes_is_survived(play: Player, answers: tuple[Any, ...]) -> None:
    """Two faults in a row, of whatever kind, cost two requests."""
    assert (7, len(answers)) == carried_out(play, "openai", *answers)
