"""Hooks around requests to models, and providers that extensions add."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import MissingKeyError, PermissionDeniedError, ProviderError
from koi_lang.events import AnswerDelta, Event
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.connection import Provider
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.context import current_run
from koi_lang.runtime.hooks.types import Deny, ModelCall, Replace, Rewrite
from tests.extensions.hooking import hooks, saying, told
from tests.playbook.playing import Player, Voice, act, done, solo

PRINT = [act("print", message="one"), done()]
PRINT_TWO = json.dumps(act("print", message="two"))


def test_a_request_is_rewritten(play: Player) -> None:
    """The model is told what the hook made of the request."""

    def shorter(call: ModelCall) -> Any:
        return Rewrite(replace(call.request, messages=(Message("user", f"To {call.agent}"),)))

    played = play(solo(), PRINT, added=hooks(shorter, kind="before_model"))

    assert played.feedback == ["To Main", "To Main"]


@pytest.mark.parametrize("to", ["a text", {"system": "x"}, None])
def test_a_request_stays_a_request(play: Player, to: Any) -> None:
    """Anything else denies."""
    played = play(solo(), PRINT, added=hooks(saying(Rewrite(to)), kind="before_model"))

    assert (played.requests, "a request was expected" in played.told) == ((), True)


def test_a_denied_request_is_not_sent(play: Player) -> None:
    """The playbook fails at once with the reason; nothing is sent and nothing is asked again."""
    hook = saying(Deny("no models on Sundays"))
    played = play(solo(), PRINT, added=hooks(hook, kind="before_model"))

    assert (played.requests, len(hook.seen), type(played.error)) == ((), 1, PermissionDeniedError)
    assert "a request to the model of `Main` was denied by `test.say`: no models on Sundays" in played.told


def test_a_broken_hook_denies_the_request(play: Player) -> None:
    """Before a request, too, hooks fail closed."""

    def broken(call: ModelCall) -> Any:
        raise KeyError("x")

    played = play(solo(), PRINT, added=hooks(broken, kind="before_model"))

    assert (played.requests, "the hook `test.broken` failed: KeyError: 'x'" in played.told) == ((), True)


def test_an_answer_of_a_hook_costs_nothing(play: Player) -> None:
    """A replaced answer is carried out as one of the model, and no tokens are counted."""
    hook = saying(Replace(PRINT_TWO), Replace(json.dumps(done(n=1))))
    played = play(solo(), PRINT, added=hooks(hook, kind="before_model"), detailed=True)

    assert (played.printed, played.result, played.requests) == (("two",), {"n": 1}, ())
    assert [data["tokens"]["input"] for data in told(played, "model_answered")] == [0, 0]


def test_an_answer_is_replaced(play: Player) -> None:
    """A hook after the answer sees all of it before any of its actions begins."""
    seen = []

    def other(call: ModelCall, text: str) -> Any:
        seen.append(text)
        return Replace(text.replace("one", "two"))

    played = play(solo(), PRINT, added=hooks(other, kind="after_model"))

    assert (played.printed, json.loads(seen[0])["message"]) == (("two",), "one")


def test_a_broken_hook_keeps_the_answer(play: Player) -> None:
    """After an answer, hooks fail open."""

    def broken(call: ModelCall, text: str) -> Any:
        raise KeyError("x")

    assert play(solo(), PRINT, added=hooks(broken, kind="after_model")).printed == ("one",)


def test_an_answer_that_breaks_off_is_not_shown(play: Player) -> None:
    """With hooks after answers, one that breaks off is asked for again as a whole."""
    calls = 0

    async def speak(request: Request) -> AsyncIterator[str]:
        nonlocal calls
        calls += 1
        yield json.dumps(PRINT[0] if calls < 3 else done())
        if calls == 1:
            raise ProviderError("cut")

    played = play(solo(), Voice(speak), added=hooks(saying(), kind="after_model"))

    assert (played.printed, calls) == (("one",), 3)


def test_a_rewriting_does_not_widen_a_budget(play: Player) -> None:
    """The budget is checked with the request that is sent."""

    def longer(call: ModelCall) -> Any:
        return Rewrite(replace(call.request, system="word " * 50_000))

    played = play(solo(), PRINT, added=hooks(longer, kind="before_model"), limits={"tokens": 20_000})

    assert (played.requests, "token" in played.told) == ((), True)


def test_the_use_of_a_model_is_told(play: Player) -> None:
    """Hooks can tell what a model is asked for."""
    seen = saying()
    play(solo(), [act("call_llm", data="x", instruction="y"), "z", done()], added=hooks(seen, kind="before_model"))

    assert [call.use for call in seen.seen] == ["default", "small", "default"]


# ---------------------------------------------------------------- providers


def test_a_provider_is_a_function() -> None:
    """It gets the options of the block, with its own name taken off the model."""
    given = []

    def make(options: Mapping[str, Any], key: Any) -> ScriptedModel:
        given.append((options["model"], key("ACME_KEY")))
        return ScriptedModel([])

    around = ModelEnvironment(providers={"acme": make})
    for options in ({"provider": "acme"}, {"provider": "Acme", "model": "x/y"}, {"model": "acme/z"}):
        connect(options, lambda name: f"<{name}>", around=around)

    assert given == [("", "<ACME_KEY>"), ("x/y", "<ACME_KEY>"), ("z", "<ACME_KEY>")]


def test_a_provider_is_a_row() -> None:
    """A row is used as those of the table are, its key included."""
    row = Provider("acme", ("ACME_KEY",), "acme-1", "http://127.0.0.1:9/v1")
    model = connect({"provider": "acme"}, lambda name: "k", around=ModelEnvironment(providers={"acme": row}))

    assert (model.provider, model.model) == ("acme", "acme-1")
    with pytest.raises(MissingKeyError, match="the provider `acme` needs a key, and `ACME_KEY` is not set"):
        connect({"provider": "acme"}, lambda name: None, around=ModelEnvironment(providers={"acme": row}))


def test_a_provider_makes_models() -> None:
    """Something else than a model is told before it is used."""
    around = ModelEnvironment(providers={"acme": lambda options, key: "no model"})  # type: ignore[dict-item, return-value]

    with pytest.raises(ProviderError, match="the provider `acme` of an extension made 'no model', which is no model"):
        connect({"provider": "acme"}, lambda name: None, around=around)


def test_whoever_watches_sees_what_hooks_leave(play: Player) -> None:
    """The text of an answer is shown once hooks have seen it, and not as the model wrote it."""
    watched: list[Event] = []

    async def speak(request: Request) -> AsyncIterator[str]:
        current_run().events.subscribe(watched.append, transient=True)
        for piece in ("one", " of them"):
            yield piece

    two = json.dumps(done())
    play(solo(), Voice(speak), added=hooks(lambda call, text: Replace(two), kind="after_model"))

    assert [two] == [event.fields["text"] for event in watched if event.type == AnswerDelta.type]
