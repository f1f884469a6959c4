"""Servers of models that a person runs: how they are named, what they cost, and who gets their key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import MissingKeyError, ProviderError, UsageError
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.layers import candidates_of
from koi_lang.llm.local_servers import read_address
from koi_lang.llm.messages import Adapter, Message, Request, Usage
from koi_lang.llm.model_choice import ModelChoice, choose
from koi_lang.llm.model_list_cache import ModelListCache
from koi_lang.llm.models import card_of, cost_usd
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.usage import Candidate, estimate
from tests.llm import local_wire
from tests.llm.local_wire import LocalServer
from tests.llm.server import ModelServer

HERE = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://127.0.0.1:8080/v1", (HERE, "")),
        ("http://127.0.0.1:8080", (HERE, "")),
        ("http://127.0.0.1:8080/", (HERE, "")),
        ("http://127.0.0.1:8080/v1/#qwen", (HERE, "qwen")),
        ("http://127.0.0.1:8080#org/qwen:7b", (HERE, "org/qwen:7b")),
        ("HTTPS://box:8000/models/v1", ("https://box:8000/models/v1", "")),
        ("http://[::1]:8080", ("http://[::1]:8080/v1", "")),
    ],
)
def test_how_addresses_are_read(address: str, expected: tuple[str, str]) -> None:
    """`/v1` may be missing, a model stands behind `#`."""
    assert read_address(address) == expected


@pytest.mark.parametrize("address", ["http://", "http://x:99999", "http://u:p@x/v1", "http://x/v1?key=1"])
def test_what_is_no_address(address: str) -> None:
    """A slip is told before anything is sent."""
    with pytest.raises(UsageError, match="is not an address of a server"):
        choose({"model": address}, lambda name: None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": f"{HERE}#qwen"}, ModelChoice("local", "qwen", HERE)),
        ({"model": "local/qwen"}, ModelChoice("local", "qwen")),
        ({"model": "local"}, ModelChoice("local")),
        ({}, ModelChoice("local")),
        ({"model": "mystery"}, ModelChoice("local", "mystery")),
        ({"model": "gpt-4o"}, ModelChoice("openai", "gpt-4o")),
        ({"model": "groq/x"}, ModelChoice("groq", "x")),
    ],
)
def test_a_server_that_is_connected_goes_before_companies(options: dict[str, str], expected: ModelChoice) -> None:
    """What names neither a provider nor one of its models is meant for the server that the person has set up."""
    assert choose(options, {"LOCAL_BASE_URL": HERE, "OPENAI_API_KEY": "k"}.get) == expected


def test_an_address_in_the_environment_is_enough() -> None:
    """`OPENAI_BASE_URL` without a key counts as connected; before, a program without a model was rehearsed."""
    assert choose({}, {"OPENAI_BASE_URL": HERE}.get) == ModelChoice("openai")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"model": "local/x"}, "secret"),
        ({"model": "local/x", "base_url": HERE}, "secret"),
        ({"model": "local/x", "base_url": "http://127.0.0.1:8080"}, "secret"),
        ({"model": "http://127.0.0.1:9090#x"}, ""),
        ({"model": "local/x", "base_url": "http://elsewhere/v1"}, ""),
    ],
)
def test_the_key_of_a_server_goes_to_no_other(options: dict[str, str], key: str) -> None:
    """An address that comes with a project does not get the key of the server that the person has connected."""
    model = connect(options, {"LOCAL_BASE_URL": HERE, "LOCAL_API_KEY": "secret"}.get)

    adapter = getattr(model, "inner", model)

    assert isinstance(adapter, SdkModel)
    assert adapter.connection.key.value == key


def test_a_key_without_an_address_goes_nowhere() -> None:
    """Where the person has named no server, none that a folder names gets their key."""
    model = connect({"model": "local/x", "base_url": HERE}, {"LOCAL_API_KEY": "secret"}.get)

    adapter = getattr(model, "inner", model)

    assert isinstance(adapter, SdkModel)
    assert "" == adapter.connection.key.value


def test_without_an_address_one_is_asked_for() -> None:
    """Nothing is connected: the message says how to connect."""
    with pytest.raises(MissingKeyError, match="no server of your own is connected") as caught:
        connect({"model": "local/x"}, lambda name: None)

    assert "koi connect http://127.0.0.1:8080/v1" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("name", "usd"), [("local/mystery", 0.0), ("local/gpt-4o", 0.0), ("ollama/qwen3.8-27b", 0.0), ("mystery", None)]
)
def test_models_of_ones_own_cost_nothing(name: str, usd: float | None) -> None:
    """What runs at home has the price 0, whatever somebody takes for a model of that name."""
    assert cost_usd(name, Usage(1000, 1000)) == usd


def test_a_budget_in_usd_bounds_them() -> None:
    """No estimate says that the price is not known, and $0 is enough."""
    need = estimate(Request("", ()), [Candidate("mystery", provider="local")])

    assert (need.unpriced, need.input_usd, need.answer_usd) == ("", 0.0, 0.0)


def adapter_of(model: Adapter) -> SdkModel:
    """The adapter inside of the layers around it."""
    while not isinstance(model, SdkModel):
        model = getattr(model, "inner")  # noqa: B009
    return model


def served(
    server: LocalServer, folder: Path, model: str = "", notes: list[str] | None = None, **options: Any
) -> tuple[SdkModel, ModelServer]:
    """The adapter for a model of a server, after one request to it."""

    async def ask() -> tuple[SdkModel, ModelServer]:
        async with ModelServer(models=server.models, documents=server.documents) as running:
            note = (notes if notes is not None else []).append
            around = ModelEnvironment(lists=ModelListCache(folder), note=note, ask_for_lists=True)
            wanted = {"model": f"{running.url}{model}", **options}
            made = await asyncio.to_thread(connect, wanted, lambda name: None, around=around)
            try:
                async for _ in made(Request("", (Message("user", "Hello"),))):
                    pass
            finally:
                await made.aclose()
            return adapter_of(made), running

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("server", "name", "id", "context", "transport"),
    [
        (local_wire.llama_cpp(), "qwen", "qwen", 8192, "tools"),
        (local_wire.llama_cpp(local_wire.FILE, has_tools=False, context=2048),
         "smollm2-135m-instruct", local_wire.FILE, 2048, "text"),
        (local_wire.llama_cpp("/m/big-00001-of-00003.gguf"), "big", "/m/big-00001-of-00003.gguf", 8192, "tools"),
        (local_wire.llama_cpp(parameters=630_167_424), "qwen", "qwen", 8192, "text"),
        (local_wire.vllm(), "Qwen2.5-7B-Instruct", "/models/Qwen2.5-7B-Instruct/", 32768, "text"),
        (local_wire.lm_studio(), "qwen2.5-7b-instruct", "qwen2.5-7b-instruct", 4096, "tools"),
        (local_wire.ollama(), "llama3.2:latest", "llama3.2:latest", None, "text"),
        (local_wire.tgi(), "HuggingFaceTB/SmolLM2-1.7B-Instruct", "HuggingFaceTB/SmolLM2-1.7B-Instruct", 4096, "text"),
    ],
    ids=["llama.cpp", "llama.cpp-file", "llama.cpp-parts", "llama.cpp-small", "vllm", "lm-studio", "ollama", "tgi"],
)  # fmt: skip
def test_what_servers_say_of_their_only_model(
    server: LocalServer, name: str, id: str, context: int | None, transport: str, tmp_path: Path
) -> None:
    """It needs no name; window and transport are as the server tells, and requests call it as the server does."""
    model, running = served(server, tmp_path)

    assert (model.model, candidates_of(model)[0].context_tokens) == (name, context)
    assert running.requests[0].body["model"] == id
    assert model.connection.transport_of(card_of(name)) == transport


@pytest.mark.parametrize(
    ("name", "parameters"),
    {
        "qwen2.5-coder-0.5b-instruct": 500_000_000,
        "SmolLM2-135M-Instruct": 135_000_000,
        "llama3.2:1b": 1_000_000_000,
        "Qwen3-30B-A3B": 30_000_000_000,
        "mixtral-8x7B": None,
        "gpt-oss": None,
        "phi-4-mini": None,
    }.items(),
)
def test_sizes_are_read_from_names(name: str, parameters: int | None, tmp_path: Path) -> None:
    """Most servers tell them nowhere else; of a name without one nothing is taken for granted."""
    model, _ = served(local_wire.vllm(name), tmp_path)

    assert model.connection.parameters == parameters


def test_tools_are_no_use_where_the_template_leaves_them_out(tmp_path: Path) -> None:
    """`transport: "tools"` would have the model act without knowing any action; a line says so."""
    notes: list[str] = []
    model, _ = served(local_wire.llama_cpp(has_tools=False), tmp_path, notes=notes, transport="tools")

    assert not model.takes_tools
    assert notes == ["`qwen` is told of its actions in text, since the template of its server has no tools"]


def test_several_models_need_a_name(tmp_path: Path) -> None:
    """The message lists them as they are written on the command line."""
    several = LocalServer([*local_wire.llama_cpp("a").models, *local_wire.llama_cpp("b").models])

    with pytest.raises(ProviderError, match=r"the server at `http://127.0.0.1:\d+` has 2 models") as caught:
        served(several, tmp_path)

    assert "/v1#a`, `-m http://127.0.0.1:" in (caught.value.help or "")
    assert served(several, tmp_path, "#b")[0].model == "b"


def test_a_mistyped_model_of_a_server(tmp_path: Path) -> None:
    """The message names the address, and what the server has."""
    with pytest.raises(ProviderError, match=r"the server at `http://127.0.0.1:\d+` has no model `qven`") as caught:
        served(local_wire.llama_cpp(), tmp_path, "#qven")

    assert caught.value.help == "Did you mean `qwen`?"
    with pytest.raises(ProviderError) as address:
        served(local_wire.llama_cpp(), tmp_path, "#localhost:8090")
    assert address.value.help == "An address has `http://`: write `-m http://localhost:8090`."


def test_a_server_that_is_not_there(unused_tcp_port: int, tmp_path: Path) -> None:
    """Without a name nothing can be asked; the message says what to do."""
    around = ModelEnvironment(lists=ModelListCache(tmp_path))

    with pytest.raises(ProviderError, match=f"no server of models answers at `http://127.0.0.1:{unused_tcp_port}`"):
        connect({"model": f"http://127.0.0.1:{unused_tcp_port}"}, lambda name: None, around=around)
