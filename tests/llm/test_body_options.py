"""What an `llm` block says beside the model, in the bodies of requests, through the real SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.errors import RequestError, SettingsError
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.reserved_fields import RESERVED
from tests.llm.server import Answer, ModelServer
from tests.llm.test_thinking import REQUEST, asked_with

TOKEN = "a-secret-that-nobody-may-see"
FIELDS = ("temperature", "top_p", "seed", "random_seed")


def notes_of(**options: Any) -> list[str]:
    """What is told of options that a model does not take."""
    notes: list[str] = []
    connect(options, lambda name: "k", around=ModelEnvironment(note=notes.append))
    return notes


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-4o", {"temperature": 0.1, "top_p": 0.5, "seed": 7}),
        ("openai/gpt-5.4", {"seed": 7}),
        ("mistral/codestral-latest", {"temperature": 0.1, "top_p": 0.5, "random_seed": 7}),
        ("deepseek/deepseek-flash", {"temperature": 0.1, "top_p": 0.5}),
        ("anthropic/claude-haiku-4-5", {"temperature": 0.1, "top_p": 0.5}),
        ("anthropic/claude-opus-5-5", {}),
    ],
)
def test_a_provider_is_sent_what_it_takes(model: str, expected: dict[str, Any]) -> None:
    """The names are those of the provider; what it does not take is left out."""
    body = asked_with({"model": model, "temperature": 0.1, "top_p": 0.5, "seed": 7.0}).body

    assert expected == {name: body[name] for name in FIELDS if name in body}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "openai/gpt-4o", "top_p": 0.5, "seed": 7, "temperature": 0}, []),
        ({"model": "openai/gpt-5.4", "top_p": 0.5}, ["`gpt-5.4` takes no `top_p`, so it is left out"]),
        ({"model": "anthropic/haiku", "seed": 7}, ["`anthropic` takes no `seed`, so it is left out"]),
        (
            {"model": "openai/gpt-4o", "effort": "low"},
            ["`gpt-4o` cannot be told how much to think, so `effort` is left out"],
        ),
        ({"model": "openai/o3", "effort": "none"}, ["`o3` has no effort `none`, so it is asked for `low`"]),
        ({"model": "openrouter/openai/o3", "effort": "none"}, []),
        (
            {"model": "anthropic/opus", "effort": "none"},
            ["`claude-opus-5-5` has no effort `none`, so it is asked for `low`"],
        ),
        (
            {"model": "anthropic/claude-haiku-4-5", "effort": "low", "temperature": 0},
            ["`claude-haiku-4-5` takes no `temperature` while it thinks, so it is left out"],
        ),
        ({"model": "openai/own", "base_url": "http://127.0.0.1:1", "effort": "low", "top_p": 0.1, "seed": 1}, []),
    ],
)
def test_what_is_left_out_is_told(options: dict[str, Any], expected: list[str]) -> None:
    """Whoever runs a program reads one sentence about each option that has no effect, or another one."""
    assert expected == notes_of(**options)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_further_fields_stand_in_the_body(provider: str) -> None:
    """They are sent as they are, beside what the request says itself, which they cannot replace."""
    extra = {"service_tier": "flex", "metadata": {"user_id": "u"}, "reasoning_effort": "xhigh"}
    plain, body = (asked_with({"provider": provider, **more}).body for more in ({}, {"extra_body": extra}))

    assert {**extra, **plain} == body


@pytest.mark.parametrize("name", [*sorted(RESERVED), "Model", "MESSAGES"])
def test_a_field_of_every_request_is_refused(name: str) -> None:
    """In any case of letters: some servers read names so."""
    with pytest.raises(SettingsError, match=f"`extra_body` may not have `{name}`"):
        notes_of(provider="openai", extra_body={name: "x"})


@pytest.mark.parametrize("provider", ["openai", "anthropic", "mistral", "deepseek"])
def test_all_that_a_request_says_is_refused_or_kept(provider: str) -> None:
    """No field of a request can be replaced: it is reserved, or it counts more than `extra_body`."""
    body = asked_with({"provider": provider, "effort": "high", "max_tokens": 9}).body
    free = {name: "x" for name in body if name not in RESERVED}

    assert body == asked_with({"provider": provider, "effort": "high", "max_tokens": 9, "extra_body": free}).body
    assert {"model", "messages", "stream"} <= set(body) - set(free)


@pytest.mark.parametrize(
    "option",
    [
        {"top_p": 0}, {"top_p": 1.5}, {"top_p": True}, {"top_p": "0.5"}, {"seed": 1.5}, {"seed": "7"}, {"seed": True},
        {"extra_body": []}, {"extra_body": "x"}, {"extra_body": {"a": object()}}, {"extra_body": {"a": float("nan")}},
        {"temperature": "hot"}, {"temperature": float("nan")}, {"temperature": -3}, {"temperature": True},
        {"max_tokens": 0}, {"max_tokens": float("inf")}, {"cache": "maybe"}, {"base_url": 3}, {"base_url": "not a url"},
        {"base_url": "http://"}, {"transport": "post"},
    ],
)  # fmt: skip
def test_options_of_another_kind_are_refused(option: dict[str, Any]) -> None:
    """Options that come from code are looked at when the model is connected."""
    (name,) = option
    with pytest.raises(SettingsError, match=f"^`{name}` (cannot be|is no)"):
        notes_of(provider="openai", **option)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_no_message_shows_what_extra_body_holds(provider: str) -> None:
    """A provider that quotes a field which it refuses carries no secret into messages, journals and tracebacks."""

    async def run() -> RequestError:
        error = {"error": {"message": f"unknown field: {TOKEN}", "type": "invalid_request_error"}}
        async with ModelServer([Answer(status=400, error=error)]) as server:
            extra = {"auth": [{"token": TOKEN}]}
            options = {"provider": provider, "base_url": server.url, "extra_body": extra}
            model = connect(options, lambda name: "sk-0123456789")
            with pytest.raises(RequestError) as caught:
                async for _ in model(REQUEST):
                    pass
            await model.aclose()
            return caught.value

    failure = asyncio.run(run())
    seen = f"{failure} {failure.help} {failure.__cause__!r} {failure.__cause__ and failure.__cause__.__cause__}"

    assert "unknown field: …" in failure.message
    assert TOKEN not in seen
