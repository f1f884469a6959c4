"""Providers that are set up, each turned into whether it answers, and into the models it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from koi_lang import settings
from koi_lang.errors import KoiError, ProviderError
from koi_lang.keys.lookup import Keys
from koi_lang.llm.catalogue import PROVIDERS, KeyLookup, key_of, provider_named
from koi_lang.llm.choice import Choice
from koi_lang.llm.connection import Connection, Provider
from koi_lang.llm.known import Known, Lists
from koi_lang.llm.lists import LIMIT_S
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.ollama import models_at, origin_of
from koi_lang.llm.providers import connect, connection_to

OLLAMA = "127.0.0.1:11434"
FEW_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of asking a provider; `known` is None where it has no list of models."""

    provider: str
    known: Known | None = None
    error: KoiError | None = None


def ollama_address() -> str:
    """Where an Ollama is looked for: OLLAMA_HOST, else its usual port on this machine."""
    return settings.variable("OLLAMA_HOST") or OLLAMA


def lists() -> Lists:
    """The lists of models in the cache folder."""
    return Lists(settings.cache_folder() / "models")


def connection_of(name: str, keys: KeyLookup) -> Connection:
    """How a provider is reached with what is set up. Raises MissingKey, or ProviderError for an unknown name."""
    provider = provider_named(name)
    base_url = f"{origin_of(ollama_address())}/v1" if provider.name == "ollama" else ""
    return connection_to(Choice(provider.name, "", base_url), {}, keys)


def set_up(keys: Keys) -> list[Provider]:
    """The providers that have a key, and an Ollama that runs; nothing is waited for longer than 300 ms."""
    with_key = [provider for provider in PROVIDERS if key_of(provider, keys)]
    return [*with_key, *([provider_named("ollama")] if models_at(ollama_address()) else [])]


async def all_reached(providers: Sequence[Provider], keys: Keys, **how: bool) -> list[Reached]:
    """What comes of asking several providers at once, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(reached(provider.name, keys, **how)) for provider in providers]
    return [task.result() for task in tasks]


async def reached(name: str, keys: KeyLookup, *, refresh: bool = False, try_out: bool = False) -> Reached:
    """What comes of asking a provider for its models; failures are part of the answer.

    Args:
        refresh: whether a kept list is not enough.
        try_out: whether a provider without a list is asked for a short answer, which may cost a fraction of a cent.
    """
    try:
        known = await lists().current(connection_of(name, keys), refresh=refresh, limit_s=LIMIT_S)
        if known is None and try_out:
            await _answer(name, keys)
    except KoiError as error:
        return Reached(name, error=error)
    return Reached(name, known)


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
