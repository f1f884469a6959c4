"""Which of OpenAI's interfaces a model is asked through."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from openai.types.shared import ChatModel, ResponsesModel

from koi_lang.errors import SettingsError
from koi_lang.llm.connect import PROVIDERS, ModelEnvironment, connect, provider_named
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.layers import Layer
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.models import RESPONSES_NAMES, card_of
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.openai_responses import OpenAIResponses
from tests.llm.refusals import error
from tests.llm.server import Answer, Asked, ModelServer
from tests.llm.test_adapters import failure_of, provider_of

THERE = """
o1-pro o3-pro-2025-06-10 o4-mini-deep-research gpt-5-pro gpt-5.2-pro gpt-5.1-codex-max gpt-5-codex codex-mini-latest
computer-use-preview gpt-daybreak-red-latest gpt-rosalind-research gpt-5.4-mini gpt-5.5-pro gpt-5.6-sol gpt-6-astra
gpt-6.2-sol gpt-10
""".split()
NOT_THERE = """
gpt-4o gpt-4.1-mini gpt-4-turbo gpt-3.5-turbo o1 o3-mini o4-mini gpt-5 gpt-5-mini gpt-5.2 gpt-oss-120b
""".split()
KEYED = Request("Rules.", (Message("user", "Begin."),), cache_key="koi-1")
OWN = "http://127.0.0.1:9/v1"
NO_SEED = "the Responses interface takes no `seed`, so it is left out"
ONE_ALONE = "`anthropic` has one interface alone, so `interface` is left out"


def interface_of(**options: Any) -> str:
    """Through which interface the model of an `llm` block is asked."""
    model = connect(options, lambda name: None if name.endswith("_URL") else "k")
    assert isinstance(model, Layer)
    return "responses" if isinstance(model.inner, OpenAIResponses) else "chat"


@pytest.mark.parametrize(("names", "expected"), [(THERE, "responses"), (NOT_THERE, "chat")])
def test_a_model_is_asked_where_it_is(names: list[str], expected: str) -> None:
    """By its name; what the chat interface can do for a model it does."""
    assert dict.fromkeys(names, expected) == {name: interface_of(provider="openai", model=name) for name in names}


def test_what_the_sdk_knows_for_that_interface_alone_goes_there() -> None:
    """Its list of models for responses is longer than that for chats."""
    alone = {name for part in get_args(ResponsesModel) for name in get_args(part)} - set(get_args(ChatModel))

    assert len(alone) > 15
    assert set() == {name for name in alone if not card_of(name).responses}


def test_every_pattern_is_reached() -> None:
    """None of them stands in the list for nothing."""
    for pattern in RESPONSES_NAMES.split():
        start = pattern.replace(".", "-").partition("*")[0].partition("[")[0]
        assert any(name.replace(".", "-").startswith(start) for name in THERE), pattern


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"provider": "openai", "model": "o3-pro", "base_url": OWN}, "chat"),
        (
            {"provider": "openai", "model": "x", "base_url": OWN, "interface": "responses"},
            "responses",
        ),
        ({"provider": "openai", "model": "gpt-5.5", "interface": "chat"}, "chat"),
        ({"provider": "openai", "model": "gpt-4o", "interface": "responses"}, "responses"),
        ({"provider": "openrouter", "model": "openai/gpt-5.5"}, "chat"),
        ({"provider": "xai", "model": "grok-4.3", "interface": "responses"}, "responses"),
    ],
)
def test_an_option_decides_and_an_address_is_asked_for_chats(options: dict[str, Any], expected: str) -> None:
    """Nothing is known of servers that somebody names; other providers have chats unless they say otherwise."""
    assert expected == interface_of(**options)


def test_an_interface_that_does_not_exist_is_refused() -> None:
    """The sentence names those that do."""
    with pytest.raises(SettingsError, match="`interface` cannot be 'response'") as caught:
        interface_of(provider="openai", interface="response")

    assert 'Give `"chat"` or `"responses"`.' == caught.value.help


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            {"provider": "openai", "model": "o3-pro", "seed": 7},
            "the Responses interface takes no `seed`, so it is left out",
        ),
        (
            {"provider": "anthropic", "interface": "chat"},
            "`anthropic` has one interface alone, so `interface` is left out",
        ),
    ],
)
def test_what_an_interface_does_not_have_is_told(options: dict[str, Any], note: str) -> None:
    """Before anything is asked."""
    notes = list[str]()

    connect(options, lambda name: None if name.endswith("_URL") else "k", around=ModelEnvironment(note=notes.append))

    assert [note] == notes


def test_a_model_that_is_elsewhere_is_said_to_be() -> None:
    """A name that the list does not have, or a server that somebody names; the sentence says what to write."""
    said = "This model is only supported in v1/responses and not in v1/chat/completions."
    failure = failure_of("openai", Answer(status=404, error=error(said, param="model")))

    assert "`openai` has `some-model` behind its Responses interface alone" == failure.message
    assert 'Write `interface: "responses"` in the `llm` block of the agent.' == failure.help


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("kind", "path"),
    [("openai", "/chat/completions"), ("responses", "/responses"), ("anthropic", "/v1/messages")],
)
@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404, page="<html><h1>404 Not Found</h1></html>"),
        Answer(status=404, page="404 page not found"),
        Answer(status=404, error={"detail": "Not Found"}),
        Answer(status=404, error=error("File Not Found", code=404)),
        Answer(status=404, error=error(f"Invalid URL (POST /v2/{'x' * 5000})")),
    ],
    ids=["page", "text", "detail", "message", "long"],
)
def test_a_path_that_a_server_does_not_have_is_no_unknown_model(kind: str, path: str, answer: Answer) -> None:
    """The address is named, and the other interface where that may be what there is."""
    failure = failure_of(kind, answer)

    assert failure.message.startswith(f"`{provider_of(kind)}` has no path at `http://127.0.0.1:")
    assert failure.message.endswith(f"` that ends in `{path}`")
    assert (path == "/responses") == ('write `interface: "chat"`' in str(failure.help))
    assert 404 == failure.status


@pytest.mark.parametrize(
    "said", ["model: some-model", "The model was not found", "model 'm' not found, try pulling it"]
)
def test_a_model_that_is_not_found_is_no_missing_path(said: str) -> None:
    """What names the model is about it."""
    assert (
        "`openai` does not know the model `some-model`"
        == failure_of("openai", Answer(status=404, error=error(said))).message
    )


# ---------------------------------------------------------------- keys of requests that begin alike


def key_in(provider: str, **options: Any) -> Any:
    """The key in the body of a request that has one."""
    connection = ProviderConnection(provider_named(provider), Secret("k"), options.pop("model", "gpt-4o"), **options)
    made = OpenAIResponses if connection.interface_of(card_of(connection.model)) == "responses" else OpenAI
    return made(connection)._body(KEYED).get("prompt_cache_key")


def test_a_provider_is_told_the_key_by_which_it_finds_what_it_has_read() -> None:
    """Others would refuse it, and of servers that somebody names nothing is known; who gives one has it kept."""
    known = {row.name for row in PROVIDERS if row.style == "openai" and key_in(row.name)}

    assert {"openai", "mistral"} == known
    assert "koi-1" == key_in("openai", model="gpt-5.5") == key_in("openai")
    assert None is key_in("openai", base_url=OWN)
    assert "mine" == key_in("openai", extra_body={"prompt_cache_key": "mine"})


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.5"])
def test_the_key_goes_over_the_wire(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the SDK's own call sends it."""

    async def run() -> list[Asked]:
        async with ModelServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            asked = connect({"provider": "openai", "model": model}, lambda name: None if "URL" in name else "k")
            _ = [delta async for delta in asked(KEYED)]
            await asked.aclose()
            return server.requests

    (asked,) = asyncio.run(run())

    assert ("koi-1", model == "gpt-5.5") == (asked.body["prompt_cache_key"], asked.path.endswith("/responses"))
