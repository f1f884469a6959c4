"""Lists of models, names of models, and the roles of `koi.toml`."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from koi_lang.errors import RequestError, SettingsError, UsageError
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.model_list_cache import DAY_S, ModelListCache
from koi_lang.llm.model_listing import ModelInfo, models_of
from koi_lang.llm.model_name_check import fits, nearest_models
from koi_lang.llm.providers import provider_named
from koi_lang.settings import read_settings
from koi_lang.setup.availability import list_connections
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.preferences import Preferences, preferences
from tests.first.machine import ANYBODY, GREETER, GREETING, KEY, Machine, Outcome
from tests.llm import local_wire
from tests.llm.server import Answer, ModelServer

MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-5.4-mini")
NAMES = ["gpt-4o", "gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "llama3.2:latest", "meta-llama/llama-4"]
ROUTED = {
    "id": "meta/llama-9",
    "context_length": 131_072,
    "top_provider": {"max_completion_tokens": 8192},
    "pricing": {"prompt": "0.00000025", "completion": "0.000001"},
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["tools", "reasoning", "temperature"],
}
FIXED = {"id": "maker/fixed", "supported_parameters": ["tools"], "architecture": {"input_modalities": ["text"]}}
OTHERWISE = {
    "id": "openai/gpt-4o",
    "context_length": 64_000,
    "pricing": {"prompt": "0.000003", "completion": "0.000012"},
}
PLAIN = ("schema", "temperature", "images")
TOGETHER = {"id": "org/model", "context_length": 4096, "pricing": {"input": 0.2, "output": 0.6}}
ANTHROPIC = {
    "id": "claude-sonnet-4-5-20250929",
    "max_input_tokens": 200_000,
    "max_tokens": 64_000,
    "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": False}},
}
MISTRAL = {"id": "m", "max_context_length": 32_000, "capabilities": {"vision": False, "function_calling": True}}


def listed(provider: str, *entries: dict[str, Any]) -> list[ModelInfo]:
    """What a provider's list is turned into."""

    async def ask() -> list[ModelInfo] | None:
        async with ModelServer(models=entries) as server:
            return await models_of(ProviderConnection(provider_named(provider), Secret(KEY), "x", server.url))

    return asyncio.run(ask()) or []


@pytest.mark.parametrize(
    ("provider", "entry", "expected"),
    [
        ("openrouter", ROUTED, (131_072, 8192, (0.25, 1.0), (*PLAIN, "effort", "reasoning", "tools"))),
        ("openrouter", FIXED, (None, None, None, ("schema", "tools"))),
        ("openrouter", OTHERWISE, (64_000, 16_384, (3.0, 12.0), ("schema", "temperature", "images"))),
        ("together", TOGETHER, (4096, None, (0.2, 0.6), ("schema", "temperature"))),
        ("anthropic", ANTHROPIC, (200_000, 64_000, (3.0, 15.0), ("schema", "temperature", "images"))),
        ("mistral", MISTRAL, (32_000, None, None, ("schema", "temperature", "tools"))),
        ("openai", {"id": "gpt-4o-mini"}, (128_000, 16_384, (0.15, 0.6), ("schema", "temperature", "images"))),
        ("openai", {"id": "gpt-4o", "pricing": {"prompt": "free"}, "capabilities": ["x"], "context_length": "9"},
         (128_000, 16_384, (2.5, 10.0), ("schema", "temperature", "images"))),
        ("groq", {"id": "whisper", "pricing": None}, (None, None, None, ("schema", "temperature"))),
    ],
)  # fmt: skip
def test_what_providers_tell_is_understood(provider: str, entry: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Sizes, prices per million tokens and abilities, in the words of each provider; the rest from our own cards."""
    (model,) = listed(provider, entry)

    assert (model.context_tokens, model.output_tokens, model.prices_usd, model.abilities) == expected


def test_anthropic_is_asked_in_its_own_way() -> None:
    """The key goes into a header of its own, the version is named, and one page holds all models."""

    async def ask() -> ModelServer:
        async with ModelServer(models=["claude-x"]) as server:
            await models_of(ProviderConnection(provider_named("anthropic"), Secret(KEY), "x", server.url))
            return server

    (look,) = asyncio.run(ask()).looks

    assert (look.path, look.headers["x-api-key"], look.headers["anthropic-version"]) == (
        "/v1/models",
        KEY,
        "2023-06-01",
    )
    assert "authorization" not in look.headers


def test_gemini_names_have_no_prefix() -> None:
    """`models/gemini-…` is listed as it is written in programs."""
    assert [model.name for model in listed("gemini", {"id": "models/gemini-2.5-pro"})] == ["gemini-2.5-pro"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-4o", True), ("GPT-4O", True), ("claude-sonnet-4-5", True), ("llama3.2", True), ("gpt-4o:extended", True),
        ("gpt-4", False), ("gtp-4o", False), ("claude-sonet-4-5", False), ("llama3", False),
    ],
)  # fmt: skip
def test_which_names_fit_a_list(name: str, expected: bool) -> None:
    """Letter case, a missing date and a variant behind a colon do not matter; anything else does."""
    assert fits(name, NAMES) is expected


def test_the_nearest_name_comes_first() -> None:
    """A transposed, a missing and a doubled letter are found."""
    assert [nearest_models(name, NAMES)[0] for name in ("gtp-4o", "claude-sonet-4-5-20250929", "llamma3.2:latest")] == [
        "gpt-4o", "claude-sonnet-4-5-20250929", "llama3.2:latest",
    ]  # fmt: skip


async def served(machine: Machine, *words: str, models: tuple[str, ...] = MODELS) -> tuple[Outcome, ModelServer]:
    """The outcome of a command while OpenAI is a server that greets."""
    machine.set(OPENAI_API_KEY=KEY)
    async with ModelServer([GREETING], models=models) as server:
        machine.use(server)
        return await machine.koi(*words), server


def test_a_list_is_asked_for_once_a_day(machine: Machine) -> None:
    """The second look needs no request; `--refresh` makes one; the age is shown."""

    async def look() -> tuple[list[int], str]:
        machine.set(OPENAI_API_KEY=KEY)
        async with ModelServer(models=MODELS) as server:
            machine.use(server)
            done = [(await machine.koi("models", *more), len(server.looks)) for more in ((), (), ("--refresh",))]
            return [looks for _, looks in done], done[0][0].out

    looks, page = asyncio.run(look())

    assert looks == [1, 1, 2]
    assert page.splitlines()[0] == "openai  (asked just now)"
    assert page.splitlines()[1].split() == ["model", "reads", "writes", "in/out", "per", "million", "abilities"]
    assert page.splitlines()[3].split() == [
        "gpt-4o-mini",
        "128k",
        "16.4k",
        "$0.15",
        "/",
        "$0.6",
        "schema",
        "temperature",
        "images",
    ]


def test_a_price_that_is_not_the_highest_is_marked(machine: Machine) -> None:
    """Where long requests cost more, a `+` and a line below say so; columns are as narrow as their contents."""
    done, _ = asyncio.run(served(machine, "models", "openai", models=("gpt-4o", "gpt-6-luna")))

    assert done.out.splitlines()[1:] == [
        "  model       reads  writes  in/out per million  abilities",
        "  gpt-4o       128k   16.4k  $2.5 / $10          schema temperature images",
        "  gpt-6-luna  1.05M    128k  $0.1 / $0.5+        schema images effort",
        "  + long requests cost more",
    ]


def test_an_old_list_is_asked_for_again(machine: Machine) -> None:
    """After a day a list counts as old, and a damaged one as missing."""

    async def look() -> int:
        connection = ProviderConnection(provider_named("openai"), Secret(KEY), "x", server.url)
        kept = lists.keep(connection, [ModelInfo("old")])
        place = lists._place(connection)
        place.write_text(json.dumps({"asked": kept.asked - DAY_S - 1, "models": []}))
        assert (await lists.current(connection)).names == ["gpt-4o"]
        place.write_text("{")
        await lists.current(connection)
        return len(server.looks)

    async def run() -> int:
        nonlocal server
        async with ModelServer(models=["gpt-4o"]) as server:
            return await look()

    lists, server = ModelListCache(machine.cache / "models"), ModelServer()

    assert asyncio.run(run()) == 2


def test_models_as_json(machine: Machine) -> None:
    """`--json` prints one list of providers with the names, sizes and prices of their models."""
    done, _ = asyncio.run(served(machine, "models", "openai", "--json"))
    (provider,) = json.loads(done.out)

    assert (done.code, provider["provider"], [model["name"] for model in provider["models"]]) == (
        0,
        "openai",
        [*MODELS],
    )
    assert provider["models"][1]["prices_usd"] == [0.15, 0.6]


@pytest.mark.parametrize("model", ["openai/gpt-5.4-mini", "gpt-5.4-mini"])
def test_the_command_line_chooses_the_model(machine: Machine, model: str) -> None:
    """`-m` counts before what the agent declares; the provider may be left out."""
    machine.project.write("a.koi", GREETER)

    done, server = asyncio.run(served(machine, "run", "a.koi", "-m", model))

    assert (done.code, done.out, done.err) == (0, "Hello Ada\n", "")
    assert [request.body["model"] for request in server.requests] == ["gpt-5.4-mini"]


def test_a_model_that_is_not_listed_but_known_is_used(machine: Machine) -> None:
    """Providers accept more names than they list: before anything is called wrong, the provider is asked."""
    machine.project.write("a.koi", GREETER)

    async def run() -> Outcome:
        machine.set(OPENAI_API_KEY=KEY)
        async with ModelServer([GREETING], models=[*MODELS, "gpt-4o-mimi"]) as server:
            machine.use(server)
            hidden = ProviderConnection(provider_named("openai"), Secret(KEY), "x", f"{server.url}/v1")
            ModelListCache(machine.cache / "models").keep(hidden, [ModelInfo(name) for name in MODELS])
            return await machine.koi("run", "a.koi", "-m", "openai/gpt-4o-mimi")

    assert asyncio.run(run()).out == "Hello Ada\n"


def test_a_declared_model_is_compared_with_a_kept_list(machine: Machine) -> None:
    """A mistyped name in an `llm` block costs no request for an answer once the list is known."""
    machine.project.write("a.koi", GREETER.replace("gpt-4o-mini", "gpt-4o-mimi"))

    async def run() -> tuple[Outcome, int]:
        machine.set(OPENAI_API_KEY=KEY)
        async with ModelServer([GREETING], models=MODELS) as server:
            machine.use(server)
            await machine.koi("models")
            return await machine.koi("run", "a.koi"), len(server.requests)

    done, requests = asyncio.run(run())

    assert (done.code, requests) == (2, 0)
    assert "Did you mean `gpt-4o-mini`" in done.err


def test_a_check_warns_about_a_model_that_is_not_listed(machine: Machine) -> None:
    """`koi check` asks nobody: it knows the list that was kept, and says nothing where there is none."""
    machine.project.write("a.koi", GREETER.replace("gpt-4o-mini", "gpt-4o-mimi"))
    machine.set(OPENAI_API_KEY=KEY)
    before = machine.now("check", "a.koi")
    row = provider_named("openai")
    ModelListCache(machine.cache / "models").keep(
        ProviderConnection(row, Secret(KEY), row.model), [ModelInfo(name) for name in MODELS]
    )

    (problem,) = json.loads(machine.now("check", "a.koi", "--json").out)

    assert before.err == "a.koi: no problems\n"
    assert (problem["code"], problem["severity"], problem["line"]) == ("E0419", "warning", 3)
    assert "`gpt-4o-mini`" in problem["help"]


def test_the_default_of_a_project_counts_where_nothing_is_declared(machine: Machine) -> None:
    """`[models] default` is for agents without a model of their own; those that declare one keep it."""
    machine.project.write("koi.toml", '[models]\ndefault = { model = "openai/gpt-5.4-mini", max_tokens = 77 }\n')
    machine.project.write("a.koi", ANYBODY)
    machine.project.write("b.koi", GREETER)

    _, without = asyncio.run(served(machine, "run", "a.koi"))
    _, declared = asyncio.run(served(machine, "run", "b.koi"))

    assert [without.requests[0].body["model"], declared.requests[0].body["model"]] == ["gpt-5.4-mini", "gpt-4o-mini"]
    assert without.requests[0].body["max_completion_tokens"] == 77


def test_roles_of_a_project_are_what_agents_lack(machine: Machine) -> None:
    """`small` of `koi.toml` counts before the default model of an agent, after its own `small`."""
    machine.project.write("koi.toml", '[models]\nsmall = "openai/gpt-4o-mini"\n')
    program = """
        role Worker { can execute }
        agent Teller : Worker {
          llm default = { provider: "openai", model: "gpt-4o" }
          OWN
          on tell(args: Json) { console.log(await callAction("call_llm", { instruction: "Say hello", data: "x" })) }
        }
        run Teller.tell({})
        """
    machine.project.write("a.koi", program.replace("OWN", ""))
    machine.project.write("b.koi", program.replace("OWN", 'llm small = { provider: "openai", model: "gpt-5.4-mini" }'))

    asked = [asyncio.run(served(machine, "run", name))[1].requests[0].body["model"] for name in ("a.koi", "b.koi")]

    assert asked == ["gpt-4o-mini", "gpt-5.4-mini"]


def test_what_is_kept_of_a_block_when_another_model_is_used(machine: Machine) -> None:
    """Temperature and limits stay; provider, address and fallbacks belong to the model that was declared."""
    block = {"provider": "groq", "model": "x", "base_url": "u", "fallback": ["y"], "temperature": 0, "max_tokens": 9}
    keys = Keys(read_settings(machine.folder))

    options, named = Preferences(keys, "openai/gpt-4o").options(block)

    assert (options, named) == ({"model": "openai/gpt-4o", "temperature": 0, "max_tokens": 9}, True)
    assert Preferences(keys, "", {"default": {"model": "z"}}).options(block) == (block, False)


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("openai/other", "http://u"),
        ("openai/qwen", "http://u"),
        ("qwen", "http://u"),
        ("groq/other", None),
        ("openai/vectors", "http://u"),
    ],
)
def test_a_prompt_for_a_server_of_ones_own_stays_there(machine: Machine, model: str, address: str | None) -> None:
    """`-m` with another model of a provider keeps the address that `koi.toml` has for it."""
    machine.project.write(
        "koi.toml",
        """
        [models]
        default = { model = "openai/qwen", base_url = "http://u" }
        embedding = { model = "openai/vectors", base_url = "http://v" }
        """,
    )

    options, _ = preferences(model, Keys(read_settings(machine.folder))).options({})

    assert options.get("base_url") == address
    assert options["model"] == (f"openai/{model}" if model == "qwen" else model)


def test_an_address_that_is_not_clear_is_not_chosen(machine: Machine) -> None:
    """Two roles of one provider at two addresses: a third model would be sent to one of them by chance."""
    described = {name: {"model": f"openai/{name}", "base_url": name} for name in ("a", "b")}
    keys = Keys(read_settings(machine.folder))

    with pytest.raises(SettingsError, match="several addresses for `openai`") as caught:
        Preferences(keys, "openai/c", described).options({})

    assert caught.value.help == "Choose one of its models: `-m openai/a`, `-m openai/b`."
    assert Preferences(keys, "openai/b", described).options({})[0]["base_url"] == "b"


def test_the_address_of_a_block_stays_with_its_provider(machine: Machine) -> None:
    """An agent that declares a server of its own is not answered by the provider whose interface it speaks."""
    block = {"provider": "openai", "model": "qwen", "base_url": "u"}

    options, _ = Preferences(Keys(read_settings(machine.folder)), "openai/gpt-4o").options(block)

    assert options == {"model": "openai/gpt-4o", "base_url": "u"}


def test_a_name_that_several_providers_list_must_be_complete(machine: Machine) -> None:
    """A bare name finds the one provider that lists it; with two the choice is the person's."""
    machine.set(GROQ_API_KEY=KEY, TOGETHER_API_KEY=KEY)
    keys, lists = Keys(read_settings(machine.folder)), ModelListCache(machine.cache / "models")
    for name, models in (("groq", ["a", "both"]), ("together", ["b", "both"])):
        row = provider_named(name)
        lists.keep(ProviderConnection(row, Secret(KEY), row.model), [ModelInfo(model) for model in models])

    assert [preferences(name, keys).model for name in ("a", "b", "c")] == ["groq/a", "together/b", "c"]
    with pytest.raises(UsageError, match="several providers have `both`"):
        preferences("both", keys)


def test_nothing_waits_for_an_ollama_that_says_nothing(machine: Machine) -> None:
    """A port that accepts and stays silent ends the look only by its limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        machine.set(OLLAMA_HOST=f"127.0.0.1:{silent.getsockname()[1]}")

        assert [] == list_connections(Keys(read_settings(machine.folder)))


@pytest.mark.parametrize(
    "entry",
    [
        {"top_provider": "x"},
        {"architecture": "x"},
        {"architecture": {"input_modalities": 5}},
        {"supported_parameters": 5},
        {"capabilities": ["vision"]},
        {"pricing": {"prompt": "1e999", "completion": "0"}},
    ],
)
def test_what_makes_no_sense_is_left_out(entry: dict[str, Any]) -> None:
    """A server may say anything about a model; what is not understood is as if it were not there."""
    assert listed("ollama", {"id": "m", **entry}) == [ModelInfo("m", abilities=("schema", "temperature"))]


@pytest.mark.parametrize("id", [5, ["m"], "", "m\x1b[31m"])
def test_what_is_no_name_is_not_listed(id: Any) -> None:
    """Nothing that a terminal could not show gets into a list."""
    assert listed("ollama", {"id": id}, {"id": "m"}) == listed("ollama", {"id": "m"})


@pytest.mark.parametrize("document", [5, "x", {"data": 5}, {"models": {"a": 1}}, []])
def test_what_is_no_list_is_no_list(document: Any) -> None:
    """Another document than a list of models is as if there were none."""

    async def ask() -> list[ModelInfo] | None:
        async with ModelServer([Answer(page=json.dumps(document))]) as server:
            return await models_of(ProviderConnection(provider_named("ollama"), Secret(""), "x", server.url))

    assert asyncio.run(ask()) is None


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://[::1", "http://127.0.0.1:x"])
def test_a_mistyped_address_is_told(address: str) -> None:
    """An address that no request can be sent to is an error that names the provider."""
    connection = ProviderConnection(provider_named("ollama"), Secret(""), "x", address)

    with pytest.raises(RequestError, match="cannot reach `ollama` at its address"):
        asyncio.run(models_of(connection))


def test_an_answer_of_a_local_server_costs_nothing(machine: Machine) -> None:
    """A budget in usd says nothing of an unknown price, and the run is told to have cost $0."""
    machine.project.write("a.koi", ANYBODY)

    async def run() -> tuple[Outcome, Any, Outcome]:
        async with ModelServer([GREETING], models=["qwen"]) as server:
            done = await machine.koi("run", "a.koi", "--max-usd", "0.01", "-m", f"{server.url}#qwen")
            return done, server.requests[0].body["model"], await machine.koi("runs", "costs", "--json")

    done, model, runs = asyncio.run(run())

    assert (done.code, done.out, done.err, model) == (0, "Hello Ada\n", "", "qwen")
    assert json.loads(runs.out)["total"]["usd"] == 0.0


PLACES = pytest.mark.parametrize("place", ["koi.toml", "environment", "local"])


@PLACES
def test_all_commands_agree_on_what_is_connected(machine: Machine, place: str) -> None:
    """A server of one's own is used, listed and examined alike, wherever its address stands."""
    machine.project.write("a.koi", ANYBODY)

    async def run() -> list[Outcome]:
        server = local_wire.llama_cpp()
        async with ModelServer([GREETING], models=server.models, documents=server.documents) as running:
            if place == "koi.toml":
                described = f'[models]\ndefault = {{ model = "openai/qwen", base_url = "{running.url}/v1" }}\n'
                machine.project.write("koi.toml", described)
            machine.set(**{"environment": {"OPENAI_BASE_URL": f"{running.url}/v1"},
                           "local": {"LOCAL_BASE_URL": running.url}}.get(place, {}))  # fmt: skip
            words = (("models",), ("doctor",), ("run", "a.koi"))
            return [await machine.koi(*each) for each in words]

    models, doctor, done = asyncio.run(run())
    provider = "local" if place == "local" else "openai"

    assert f"{provider} at http://127.0.0.1:" in models.out
    assert "qwen" in models.out
    assert "answers: `qwen`" in doctor.out
    assert "no provider is connected" not in doctor.out
    assert (done.code, done.out) == (0, "Hello Ada\n")
