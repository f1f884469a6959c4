"""Providers that are set up, each turned into whether it answers, and into the models it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koi_lang import settings
from koi_lang.errors import KoiError, ProviderError, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.connect import ModelEnvironment, Note, connect, connection_to
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.local_servers import origin
from koi_lang.llm.messages import Adapter, Message, Request
from koi_lang.llm.model_choice import ModelChoice, choose, written_choice
from koi_lang.llm.model_list_cache import CachedModelList, ModelListCache
from koi_lang.llm.model_listing import LIMIT_S, address_of
from koi_lang.llm.model_name_check import require_known
from koi_lang.llm.ollama import models_at, origin_of
from koi_lang.llm.providers import PROVIDERS, STAND_INS, KeyLookup, is_connected, provider_named

if TYPE_CHECKING:
    from koi_lang.llm import embeddings
    from koi_lang.llm.embeddings import Embedder
else:
    embeddings = lazy_module("koi_lang.llm.embeddings")

OLLAMA = "127.0.0.1:11434"
FEW_TOKENS = 16
NO_ROLES: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """What came of asking a provider.

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
        """What a person calls it."""
        return f"{self.provider} at {self.address}" if self.address else self.provider


def ollama_address() -> str:
    """Where an Ollama is looked for: OLLAMA_HOST, else its usual port on this machine."""
    return settings.variable("OLLAMA_HOST") or OLLAMA


def lists() -> ModelListCache:
    """The lists of models in the cache folder."""
    return ModelListCache(settings.cache_folder() / "models")


def model_of(llm: Mapping[str, Any], keys: KeyLookup, on_note: Note, **own: Any) -> Adapter:
    """The model for the options of an `llm` block, with answers and lists of models kept in the cache folder.

    Args:
        own: fields of `Surroundings` that depend on the run.
    """
    return connect(llm, keys, on_note=on_note, around=surroundings(**own))


def embedder_of(llm: Mapping[str, Any], keys: KeyLookup, **own: Any) -> Embedder:
    """The model for embeddings for the options of an `llm` block, with vectors kept where answers are."""
    return embeddings.embedder(llm, keys, around=surroundings(**own))


async def embedding_reached(options: Mapping[str, Any], keys: KeyLookup) -> ProviderConnection:
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
    """What surrounds models on this machine, with further fields, or others than here."""
    usual = {"cache_folder": settings.cache_folder() / "answers", "lists": lists(), "ollama": ollama_address()}
    return ModelEnvironment(**{**usual, **own})


def with_provider(model: str, keys: KeyLookup) -> str:
    """A bare name with the provider that lists it, among those that are connected; else as it is.

    Raises:
        KoiError: several do, or the name mistypes a provider.
    """
    provider, name = written_choice({"model": model})
    if provider != "auto" or any(row.prefixes and name.startswith(row.prefixes) for row in PROVIDERS):
        return model
    kept = {row.name: lists().find(connection_of(row.name, keys)) for row in PROVIDERS if is_connected(row, keys)}
    having = [f"{row}/{name}" for row, known in kept.items() if known and name in known.names]
    if len(having) > 1:
        raise UsageError(f"several providers have `{name}`", help=f"Write one of {', '.join(having)}.")
    return having[0] if having else model


def require_provider(options: Mapping[str, Any]) -> None:
    """Raise ProviderError when options of a model name a provider that does not exist."""
    provider, _ = written_choice(options)
    if provider not in ("auto", *STAND_INS):
        provider_named(provider)


async def require_model(options: Mapping[str, Any], keys: KeyLookup, **own: Any) -> None:
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
    """How a provider is reached with what is set up. Raises MissingKeyError, or ProviderError for an unknown name."""
    provider = provider_named(name)
    base_url = f"{origin_of(ollama_address())}/v1" if provider.name == "ollama" else ""
    return connection_to(ModelChoice(provider.name, "", base_url), {}, keys)


def list_connections(
    keys: KeyLookup, usual: Mapping[str, Mapping[str, Any]] = NO_ROLES, *, looks: bool = True
) -> list[ProviderConnection]:
    """How everything is reached that requests may go to: what is connected, for every command that asks.

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


def _no_key(name: str) -> None:
    return None


async def all_reached(connections: Sequence[ProviderConnection], **how: bool) -> list[ProviderStatus]:
    """What comes of asking several providers at once, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check_connection(each, **how)) for each in connections]
    return [task.result() for task in tasks]


async def check_connection(connection: ProviderConnection, *, refresh: bool = False) -> ProviderStatus:
    """What comes of asking a provider for its models; failures are part of the answer.

    Args:
        refresh: whether a kept list is not enough.
    """
    name, is_own = connection.provider.name, connection.is_own_server
    address = origin(str(connection.base_url)) if is_own else ""
    try:
        known = await lists().current(connection, refresh=refresh or is_own, limit_s=LIMIT_S)
    except KoiError as error:
        return ProviderStatus(name, error=error, address=address)
    return ProviderStatus(name, known, address=address)


async def check_provider(name: str, keys: KeyLookup, *, refresh: bool = False, try_out: bool = False) -> ProviderStatus:
    """What comes of asking a provider for its models; failures are part of the answer.

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
