"""Providers that are set up, each turned into whether it answers, and into the models it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang import settings
from koi_lang.errors import KoiError, ProviderError, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.connect import ModelEnvironment, Note, alternatives, connect, connection_to, read_options
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.local_servers import LOCAL, is_address, origin, read_address, server_title
from koi_lang.llm.messages import Adapter, Message, Request
from koi_lang.llm.model_choice import (
    NO_ROLES,
    ModelChoice,
    Options,
    Roles,
    addresses_in,
    choose,
    written_choice,
)
from koi_lang.llm.model_list_cache import CachedModelList, ModelListCache
from koi_lang.llm.model_listing import LIMIT_S, address_of
from koi_lang.llm.model_name_check import require_known
from koi_lang.llm.ollama import models_at, origin_of
from koi_lang.llm.providers import PROVIDERS, STAND_INS, KeyLookup, is_connected, makers_of, provider_named

if TYPE_CHECKING:
    import socket

    from koi_lang.llm import embeddings
    from koi_lang.llm.embeddings import Embedder
else:
    socket = lazy_module("socket")
    embeddings = lazy_module("koi_lang.llm.embeddings")

OLLAMA = "127.0.0.1:11434"
FEW_TOKENS = 16
# Of llama.cpp, LM Studio and vLLM; that of Ollama is looked at by `OLLAMA_HOST`.
DEFAULT_PORTS = "8080 1234 8000"
CONNECT_S, NEARBY_S = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The status of a provider.

    Attributes:
        known: None where it has no list of models.
        address: of a server that is asked without a key; empty for others.
    """

    provider: str
    known: CachedModelList | None = None
    error: KoiError | None = None
    address: str = ""

    @property
    def title(self) -> str:
        """Its name for people."""
        return f"{self.provider} at {self.address}" if self.address else self.provider


def ollama_address() -> str:
    """Where an Ollama is looked for: OLLAMA_HOST, else its usual port on this machine."""
    return settings.variable("OLLAMA_HOST") or OLLAMA


def lists() -> ModelListCache:
    """The lists of models in the cache folder."""
    return ModelListCache(settings.cache_folder() / "models")


def model_of(llm: Options, keys: KeyLookup, on_note: Note, **own: Any) -> Adapter:
    """The model for the options of an `llm` block, with answers and lists of models kept in the cache folder.

    Args:
        own: fields of `Surroundings` that depend on the run.
    """
    return connect(llm, keys, on_note=on_note, around=surroundings(**own))


def embedder_of(llm: Options, keys: KeyLookup, **own: Any) -> Embedder:
    """The model for embeddings for the options of an `llm` block, with vectors kept where answers are."""
    return embeddings.embedder(llm, keys, around=surroundings(**own))


async def embedding_reached(options: Options, keys: KeyLookup) -> ProviderConnection:
    """How the model for embeddings is reached that some options name, once its provider has answered.

    Raises:
        KoiError: it does not answer, has no such model, or makes no embeddings.
    """
    around = surroundings()
    connection = embeddings.connection_for(options, keys, around=around)
    await lists().current(connection, refresh=True, limit_s=LIMIT_S)
    await embeddings.check_name(connection, around)
    return connection


def surroundings(**own: Any) -> ModelEnvironment:
    """The environment of models on this machine, with further or replaced fields."""
    usual = {"cache_folder": settings.cache_folder() / "answers", "lists": lists(), "ollama": ollama_address()}
    usual |= {"nearby": lambda: [address for address, _ in nearby_servers()]}
    return ModelEnvironment(**{**usual, **own})


def with_provider(model: str, keys: KeyLookup, usual: Roles = NO_ROLES) -> str:
    """A bare name with the provider that `koi.toml`, or the list of one that is connected, has it at; else as it is.

    Raises:
        KoiError: several do, or the name mistypes a provider.
    """
    described = [maker for maker, name in addresses_in({}, usual) if name == model and maker != "auto"]
    if described:
        return f"{described[0]}/{model}"
    provider, name = written_choice({"model": model})
    if provider != "auto" or makers_of(name):
        return model
    kept = {row.name: lists().find(connection_of(row.name, keys)) for row in PROVIDERS if is_connected(row, keys)}
    having = [f"{row}/{name}" for row, known in kept.items() if known and name in known.names]
    if len(having) > 1:
        raise UsageError(f"several providers have `{name}`", help=f"Write one of {', '.join(having)}.")
    return having[0] if having else model


def require_provider(options: Options) -> None:
    """Raise KoiError when options of a model name a provider that does not exist, or have a wrong value."""
    provider, _ = written_choice(options)
    if provider not in ("auto", *STAND_INS):
        provider_named(provider)
    for each in (options, *alternatives(options)):
        read_options(each)


def require_role(role: str, options: Options) -> None:
    """Raise KoiError when the options of a role name a provider that does not exist, or one without that role."""
    require_provider(options)
    if role == "embedding":
        embeddings.require_embeddings(options)


def names_rehearsal(options: Options) -> bool:
    """Whether options of a model ask for the rehearsal by its name."""
    return written_choice(options)[0] == "rehearsal"


async def require_model(options: Options, keys: KeyLookup, **own: Any) -> None:
    """Raise KoiError when the model of some options cannot be reached, or its provider has none of that name.

    Args:
        own: fields of `Surroundings` that depend on the run.
    """
    adapter = connect(options, keys, around=surroundings(ask_for_lists=True, **own))
    try:
        await require_known(adapter)
    finally:
        await adapter.aclose()


def connection_of(name: str, keys: KeyLookup) -> ProviderConnection:
    """The configured connection to a provider, or to the server at an address.

    Raises:
        MissingKeyError: the provider has no key.
        ProviderError: there is no such provider.
        UsageError: this is no address.
    """
    if is_address(name):
        return connection_to(ModelChoice(LOCAL, "", read_address(name)[0]), {}, keys)
    provider = provider_named(name)
    base_url = f"{origin_of(ollama_address())}/v1" if provider.name == "ollama" else ""
    return connection_to(ModelChoice(provider.name, "", base_url), {}, keys)


def list_connections(keys: KeyLookup, usual: Roles = NO_ROLES, *, looks: bool = True) -> list[ProviderConnection]:
    """All configured connections, for every command that uses them.

    These are the providers that have a key, or an address that the person has set, an Ollama that runs, and the
    addresses in `koi.toml`. Those get no key, as they may have come with the project.

    Args:
        usual: the options of models in `koi.toml`, by role.
        looks: whether an Ollama is looked for, which takes at most 300 ms.
    """
    found = [connection_of(row.name, keys) for row in PROVIDERS if is_connected(row, keys)]
    if looks and models_at(ollama_address()):
        found.append(connection_of("ollama", keys))
    for options in (options for role, options in usual.items() if role != "embedding"):
        choice = choose(options, _no_key)
        if choice.provider not in STAND_INS and (options.get("base_url") or choice.base_url):
            found.append(connection_to(choice, options, _no_key))
    return list({(each.provider.name, address_of(each)): each for each in reversed(found)}.values())[::-1]


def nearby_servers() -> list[tuple[str, CachedModelList]]:
    """The servers of models on the usual ports of this machine, by their addresses; nothing is used unasked.

    KOI_LOCAL_PORTS names other ports; `none` looks at none. A port that nobody listens at takes no time.
    """
    found = []
    for word in (settings.variable("KOI_LOCAL_PORTS") or DEFAULT_PORTS).split():
        if not word.isdigit():
            continue
        address = f"http://127.0.0.1:{word}/v1"
        try:
            socket.create_connection(("127.0.0.1", int(word)), CONNECT_S).close()
            known = lists().look(connection_to(ModelChoice(LOCAL, "", address), {}, _no_key), NEARBY_S, fresh=True)
        except (OSError, OverflowError):
            continue
        if known is not None:
            found.append((address, known))
    return found


def tell_nearby_servers() -> Iterator[str]:
    """A line for each server of models on this machine that a person could use."""
    found = nearby_servers()
    for address, known in found:
        models = [model for model in known.models if model.answers]
        if models:
            name = models[0].server or "a server"
            wanted = f"`{models[0].name}`" if len(models) == 1 else f"{len(models)} models"
            way = LOCAL if len(found) == 1 else origin(address)
            yield f"{name} serves {wanted} at {origin(address)}: `koi run -m {way}` asks it"


def _no_key(name: str) -> None:
    return None


async def all_reached(connections: Sequence[ProviderConnection], **how: bool) -> list[ProviderStatus]:
    """The statuses of several providers, asked at once, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check_connection(each, **how)) for each in connections]
    return [task.result() for task in tasks]


async def check_connection(connection: ProviderConnection, *, refresh: bool = False) -> ProviderStatus:
    """The status of a provider by its list of models; failures are part of it.

    Args:
        refresh: whether a kept list is not enough.
    """
    name, is_own = connection.provider.name, connection.is_own_server
    address = server_title(str(connection.base_url)) if is_own else ""
    try:
        known = await lists().current(connection, refresh=refresh or is_own, limit_s=LIMIT_S)
    except KoiError as error:
        return ProviderStatus(name, error=error, address=address)
    return ProviderStatus(name, known, address=address)


async def check_provider(name: str, keys: KeyLookup, *, refresh: bool = False, try_out: bool = False) -> ProviderStatus:
    """The status of a provider by its list of models; failures are part of it.

    Args:
        refresh: whether a kept list is not enough.
        try_out: whether a provider without a list is asked for a short answer, which may cost a fraction of a cent.
    """
    try:
        status = await check_connection(connection_of(name, keys), refresh=refresh)
        if status.known is None and status.error is None and try_out:
            await _answer(name, keys)
    except KoiError as error:
        return ProviderStatus(name, error=error)
    return status


async def _answer(name: str, keys: KeyLookup) -> None:
    """Have a provider say a word. Raises ProviderError."""
    model = connect({"provider": name, "max_tokens": FEW_TOKENS}, keys)
    try:
        async with asyncio.timeout(3 * LIMIT_S):
            async for _ in model(Request("", (Message("user", "Say ok."),))):
                break
    except TimeoutError as error:
        raise ProviderError(f"`{name}` did not answer within {3 * LIMIT_S:g} s", help="Try again later.") from error
    finally:
        await model.aclose()
