"""Which provider and model an `llm` block means, and what is put around them."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from koi_lang.errors import MissingKeyError, ProviderError, SettingsError
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.model_choice import ModelChoice, choose, exchange_model, place_model
from koi_lang.llm.ollama import MAX_PROBE_S, models_at, origin_of
from tests.limits import LIMIT_S
from tests.llm.flaky import REQUEST, Listener, text_of
from tests.llm.server import Answer, ModelServer


def models(*names: str) -> bytes:
    """What an Ollama says about the models it has."""
    return json.dumps({"models": [{"name": name, "size": 1} for name in names]}).encode()


@contextmanager
def ollama(answer: bytes, status: int = 200) -> Iterator[str]:
    """The address of a server that answers one request in this way."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/api/tags" else 404)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *about: Any) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        thread.join()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "anthropic/sonnet"}, ModelChoice("anthropic", "sonnet")),
        ({"model": "groq/openai/gpt-oss-120b"}, ModelChoice("groq", "openai/gpt-oss-120b")),
        ({"model": "Ollama/llama3.2"}, ModelChoice("ollama", "llama3.2")),
        ({"model": "mistral/auto"}, ModelChoice("mistral")),
        ({"model": "anthropic:haiku"}, ModelChoice("anthropic", "haiku")),
        ({"model": "OpenRouter:openai/gpt-oss:free"}, ModelChoice("openrouter", "openai/gpt-oss:free")),
        ({"model": "openrouter/openai/gpt-oss:free"}, ModelChoice("openrouter", "openai/gpt-oss:free")),
        ({"model": "ollama:mistral:7b"}, ModelChoice("ollama", "mistral:7b")),
        ({"model": "mistral:7b-instruct"}, ModelChoice("openai", "mistral:7b-instruct")),
        ({"model": "qwen2:instruct"}, ModelChoice("qwen", "qwen2:instruct")),
        ({"model": "llama3.2:latest"}, ModelChoice("openai", "llama3.2:latest")),
        ({"model": "anthropic"}, ModelChoice("anthropic")),
        ({"model": "rehearsal"}, ModelChoice("rehearsal")),
        ({"provider": "groq", "model": "openai/gpt-oss-120b"}, ModelChoice("groq", "openai/gpt-oss-120b")),
        ({"provider": "auto", "model": "meta/llama"}, ModelChoice("openai", "meta/llama")),
        ({"model": "opus"}, ModelChoice("anthropic", "opus")),
    ],
)
def test_what_a_block_means(options: dict[str, str], expected: ModelChoice) -> None:
    """`provider/model` names both, unless the provider is named already."""
    assert choose(options, {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}.get) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ModelChoice("local")),
        ({"model": "auto"}, ModelChoice("local")),
        ({"model": "gemma"}, ModelChoice("local", "gemma")),
        ({"model": "gemma:7b"}, ModelChoice("local", "gemma:7b")),
        ({"model": "meta-llama/Llama-3"}, ModelChoice("local", "meta-llama/Llama-3")),
        ({"model": "local/gemma"}, ModelChoice("local", "gemma")),
        # Called like a provider, or like the models of one, that is not connected.
        ({"model": "qwen"}, ModelChoice("local", "qwen")),
        ({"model": "Qwen/Qwen3-8B"}, ModelChoice("local", "Qwen/Qwen3-8B")),
        ({"model": "qwen2.5-7b"}, ModelChoice("local", "qwen2.5-7b")),
        ({"model": "mistral-7b"}, ModelChoice("local", "mistral-7b")),
        # Of a provider, at another address.
        ({"model": "qwen/qwen-plus"}, ModelChoice("qwen", "qwen-plus")),
        ({"provider": "qwen"}, ModelChoice("qwen")),
        ({"model": "openai"}, ModelChoice("openai")),
        ({"model": "gpt-5.4"}, ModelChoice("openai", "gpt-5.4")),
        ({"model": "anthropic"}, ModelChoice("anthropic")),
    ],
)
def test_what_a_block_with_an_address_means(options: dict[str, str], expected: ModelChoice) -> None:
    """A name without a provider is one of the server's; a key that is there for something else is no reason."""
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

    assert choose({**options, "base_url": "http://box:8080/v1"}, keys.get) == expected


@pytest.mark.parametrize(("address", "provider"), [("http://127.0.0.1:8080", "local"), ("https://eu.example", "qwen")])
def test_a_connected_provider_is_not_on_this_machine(address: str, provider: str) -> None:
    """`qwen` is the provider at an address of its own, and a model where the address is one of this machine."""
    assert choose({"model": "qwen", "base_url": address}, {"DASHSCOPE_API_KEY": "k"}.get).provider == provider


@pytest.mark.parametrize(
    ("names", "model", "expected"),
    [
        (("qwen3:8b", "llama3.2:latest"), "", "llama3.2:latest"),
        (("qwen3:8b", "gemma3:4b"), "", "qwen3:8b"),
        (("qwen3:8b", "gemma3:4b"), "gemma3", "gemma3:4b"),
        (("qwen3:8b", "qwen3:1b"), "qwen3:1b", "qwen3:1b"),
    ],
)
def test_a_running_ollama_is_found(names: tuple[str, ...], model: str, expected: str) -> None:
    """Without any key its usual model is taken, else one that it has."""
    with ollama(models(*names)) as address:
        choice = choose({"model": model}, lambda name: None, ollama=address, limit_s=LIMIT_S)

    assert choice == ModelChoice("ollama", expected, f"http://{address}/v1")


@pytest.mark.parametrize(
    ("answer", "status", "model"),
    [
        (models(), 200, ""),
        (models("qwen3:8b"), 200, "gpt-4o"),
        (models("qwen3:8b"), 503, ""),
        (b"<html>", 200, ""),
        (b"[1]", 200, ""),
        (b'{"models": [1, {"name": ""}]}', 200, ""),
    ],
)
def test_an_ollama_that_is_of_no_use_is_passed_over(answer: bytes, status: int, model: str) -> None:
    """No models, another model than the one asked for, or somebody else's server: the rehearsal it is."""
    with ollama(answer, status) as address:
        assert choose({"model": model}, lambda name: None, ollama=address, limit_s=LIMIT_S) == ModelChoice("rehearsal")


def test_a_key_goes_before_ollama(unused_tcp_port: int) -> None:
    """Nobody looks for Ollama when there is a key."""
    choice = choose({}, {"GROQ_API_KEY": "k"}.get, ollama=f"127.0.0.1:{unused_tcp_port}")

    assert choice == ModelChoice("groq")


def test_looking_for_ollama_is_not_waited_for() -> None:
    """With a server that accepts and says nothing only the limit ends it, and that is short."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = models_at(f"127.0.0.1:{silent.getsockname()[1]}", limit_s=0.02)

    assert ((), 0.3) == (found, MAX_PROBE_S)


def test_nobody_listening_is_no_ollama(unused_tcp_port: int) -> None:
    """A refused connection is an answer, too."""
    assert models_at(f"127.0.0.1:{unused_tcp_port}") == ()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("http://box", "http://box:80"),
        ("https://box/", "https://box:443"),
        ("https://box:8443", "https://box:8443"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("[::1]:99", "http://[::1]:99"),
    ],
)
def test_addresses_of_ollama(address: str, expected: str) -> None:
    """They are written as for Ollama itself; where it listens everywhere, it is looked for here."""
    assert origin_of(address) == expected


@pytest.mark.parametrize("address", ["127.0.0.1:port", "ftp://box", "http://[::1"])
def test_what_is_no_address_is_told(address: str) -> None:
    """A slip in a setting is not taken for an Ollama that does not run."""
    with pytest.raises(SettingsError, match="is not an address of Ollama"):
        models_at(address)


def test_a_named_ollama_is_reached_at_its_address() -> None:
    """The address in the settings holds for `provider: ollama`, too."""
    assert choose({"provider": "ollama"}, lambda name: None, ollama="box") == ModelChoice(
        "ollama", "", "http://box:11434/v1"
    )


def test_retries_and_fallback_are_put_around_a_model() -> None:
    """The first provider fails three times, the second answers, and the end of the answer says which."""
    listener = Listener()

    async def run() -> tuple[int, str]:
        async with ModelServer([Answer(status=529)] * 3 + [Answer(pieces=("answer",))]) as server:
            second = {"provider": "anthropic", "model": "claude-haiku-4-5", "base_url": server.url}
            options = {"provider": "openai", "model": "m", "base_url": server.url, "fallback": [second]}
            around = ModelEnvironment(listener.on_event, listener.sleep)
            model = connect(options, lambda name: "k", around=around)
            deltas = [delta async for delta in model(REQUEST)]
            await model.aclose()
            return len(server.requests), getattr(deltas[-1], "answered_by", "")

    assert asyncio.run(run()) == (4, "anthropic/claude-haiku-4-5")
    assert [name for name, _ in listener.events] == ["retry_started", "retry_started", "retry_ended", "model_replaced"]


def test_a_fallback_may_be_a_name() -> None:
    """It keeps the temperature of the block, and its own key is needed."""
    options = {"provider": "scripted", "answers": ["x"], "fallback": ["groq/some-model"]}

    with pytest.raises(MissingKeyError, match="GROQ_API_KEY"):
        connect(options, lambda name: None)
    assert text_of(connect(options, lambda name: "k")) == "x"


@pytest.mark.parametrize("listed", ["anthropic/sonnet", [1], {"model": "sonnet"}])
def test_a_fallback_is_a_list(listed: Any) -> None:
    """Anything else is told, with an example."""
    with pytest.raises(SettingsError, match="`fallback` is not a list of models"):
        connect({"provider": "scripted", "fallback": listed}, lambda name: "k")


def test_settings_of_the_block_reach_the_fallback() -> None:
    """What a fallback does not say is as for the first model."""

    async def run() -> dict[str, Any]:
        async with ModelServer([Answer(status=401), Answer()]) as server:
            second = {"provider": "groq", "base_url": server.url, "max_tokens": 5}
            first = {"provider": "openai", "model": "m", "base_url": server.url, "temperature": 0.2, "max_tokens": 9}
            model = connect({**first, "fallback": [second]}, lambda name: "k")
            async for _ in model(REQUEST):
                pass
            await model.aclose()
            return dict(server.requests[1].body)

    body = asyncio.run(run())

    assert (body["model"], body["temperature"], body["max_tokens"]) == ("openai/gpt-oss-120b", 0.2, 5)


def test_an_unknown_name_in_a_fallback_is_told() -> None:
    """A provider that does not exist is found when the model is made, not when it is needed."""
    with pytest.raises(ProviderError, match="there is no provider `grok`"):
        connect({"provider": "scripted", "fallback": [{"provider": "grok"}]}, lambda name: "k")


@pytest.mark.parametrize(
    ("model", "message", "help"),
    [
        ("gpt-4o", "the provider `openai` needs a key, and `OPENAI_API_KEY` is not set", "koi connect openai"),
        ("anthropic:haiku", "the provider `anthropic` needs a key", "koi connect anthropic"),
        ("opnai:gpt-4o", "there is no provider `opnai`", "Did you mean `openai/gpt-4o`?"),
        ("sonet-9", "no provider that is set up has a model `sonet-9`", "Write `provider/model`"),
        ("gtp-5.4-mini", "no provider that is set up has a model `gtp-5.4-mini`", "Did you mean `gpt-5.4-mini`"),
    ],
)
def test_a_model_that_a_person_names_is_no_rehearsal(model: str, message: str, help: str) -> None:
    """Without any key, whoever asks for a model is told what is missing; a block of a program is rehearsed."""
    with pytest.raises(ProviderError) as raised:
        connect({"model": model}, {}.get, around=ModelEnvironment(ask_for_lists=True))

    assert (message in raised.value.message, help in str(raised.value.help)) == (True, True)
    if ":" not in model:
        assert connect({"model": model}, {}.get).provider == "rehearsal"


HERE = "http://127.0.0.1:9/v1"
OPENAI = {"model": "openai/a", "base_url": HERE}
WRITTEN = {"provider": "openai", "model": "a", "base_url": HERE}
OWN_SERVER = {"model": "mine-7b", "base_url": HERE}


@pytest.mark.parametrize(
    ("block", "model", "expected"),
    [
        (OPENAI, "b", {"provider": "openai", "model": "b", "base_url": HERE}),
        (OPENAI, "openai/b", {"provider": "openai", "model": "b", "base_url": HERE}),
        (OPENAI, "anthropic/haiku", {"model": "anthropic/haiku"}),
        (OPENAI, "http://127.0.0.1:8/v1", {"model": "http://127.0.0.1:8/v1"}),
        (WRITTEN, "b", {"provider": "openai", "model": "b", "base_url": HERE}),
        (WRITTEN, "Some/b", {"provider": "openai", "model": "Some/b", "base_url": HERE}),
        (WRITTEN, "anthropic/haiku", {"model": "anthropic/haiku"}),
        (OWN_SERVER, "b", {"provider": "local", "model": "b", "base_url": HERE}),
        (OWN_SERVER, "gpt-5-mini", {"provider": "local", "model": "gpt-5-mini", "base_url": HERE}),
        (OWN_SERVER, "openai/b", {"model": "openai/b"}),
        ({"model": "gpt-5-mini", "base_url": HERE}, "claude-haiku-4-5", {"model": "claude-haiku-4-5"}),
        ({"model": "gpt-5-mini", "base_url": HERE}, "gpt-5", {"model": "gpt-5", "base_url": HERE}),
        ({"model": "http://127.0.0.1:9/v1#a"}, "openai/b", {"model": "openai/b"}),
        ({}, "anthropic/haiku", {"model": "anthropic/haiku"}),
    ],
)
def test_another_model_takes_no_address_of_another_provider(
    block: dict[str, str], model: str, expected: dict[str, str]
) -> None:
    """A bare name stays where the block is; a provider that is named gets neither its address nor its key."""
    found = exchange_model({**block, "temperature": 0.5}, {"model": model})

    assert {name: value for name, value in found.items() if value != "auto"} == {**expected, "temperature": 0.5}


def test_another_model_is_placed_by_the_roles() -> None:
    """The address that `koi.toml` has for the provider of the other model counts, and the options of the call do."""
    roles = {"small": {"model": "anthropic/haiku", "base_url": "http://127.0.0.1:8"}}
    found = exchange_model(OPENAI, {"model": "anthropic/sonnet", "effort": "low"}, roles)

    assert found == {"model": "anthropic/sonnet", "base_url": "http://127.0.0.1:8", "effort": "low"}


def test_a_bare_name_of_another_maker_takes_no_address() -> None:
    """A model that a person names by its name alone is at the address of its maker."""
    roles = {"default": {"model": "gpt-5-mini", "base_url": HERE}}

    assert place_model("claude-haiku-4-5", {}, roles) == {"model": "claude-haiku-4-5"}
    assert place_model("gpt-5", {}, roles) == {"model": "gpt-5", "base_url": HERE}


def test_a_bare_fallback_stays_at_the_address() -> None:
    """A name without a provider is one of the server of the first model."""
    options = {**OPENAI, "fallback": ["b"]}

    connect(options, lambda name: None)


def test_a_fallback_of_the_same_provider_has_its_address() -> None:
    """What is meant for a server of one's own does not go to a company when that server is down."""
    options = {"model": "openai/a", "base_url": "http://127.0.0.1:9/v1", "fallback": ["openai/b", "groq/c"]}

    with pytest.raises(MissingKeyError, match="the provider `groq` needs a key"):
        connect(options, lambda name: None)

    connect({**options, "fallback": ["openai/b"]}, lambda name: None)
