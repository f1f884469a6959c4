"""The providers: which key counts, and whether they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang.errors import REFUSED, KoiError, RequestError
from koi_lang.health.findings import Finding
from koi_lang.llm.local_servers import ADDRESS_VARIABLE, LOCAL, origin
from koi_lang.llm.ollama import models_at, origin_of
from koi_lang.llm.providers import PROVIDERS
from koi_lang.settings import project
from koi_lang.setup.availability import (
    ProviderStatus,
    all_reached,
    embedding_reached,
    list_connections,
    nearby_servers,
    ollama_address,
)
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.preferences import name_of, preferences
from koi_lang.system.loopback import is_loopback_url

MAX_NAMES = 3


def keys_found(keys: Keys) -> Iterator[Finding]:
    """The providers that have a key, and where it is."""
    for row in PROVIDERS:
        copies = list(keys.copies(row.keys[0])) if row.keys else []
        if copies:
            first, *others = copies
            also = f"; not used: {', '.join(f'{other.place} {other.masked_key}' for other in others)}" if others else ""
            yield Finding("keys", "ok", f"{row.name}: {first.name} {first.masked_key} from {first.place}{also}")
    for line in keys.notes:
        yield Finding("keys", "warning", line)
    if address := keys.find(ADDRESS_VARIABLE):
        yield Finding("keys", "ok", f"{LOCAL}: {address.value} from {address.place}, which needs no key")


def check_connected(keys: Keys, *, offline: bool) -> Iterator[Finding]:
    """Whether all that is connected answers. Each is asked for its list of models, which costs nothing."""
    usual = project.models(keys.settings)
    mine = list_connections(keys, looks=not offline)
    # An address that comes with the project may lead anywhere; the doctor asks one on this machine alone.
    described = [each for each in list_connections(keys, usual, looks=False) if each not in mine]
    connections = [*mine, *(each for each in described if is_loopback_url(str(each.base_url)))]
    for each in described:
        if each not in connections:
            yield Finding("providers", "ok", f"{each.provider.name} at {each.base_url}, of `koi.toml`, is not asked")
    if not (mine or described):
        text = (
            "no provider is connected; `koi run` rehearses at a terminal, and what needs a model is refused elsewhere"
        )
        yield Finding("keys", "warning", text, "koi connect")
    asked = [] if offline else [each for each in connections if each.provider.name != "ollama"]
    for reached in asyncio.run(all_reached(asked, refresh=True)):
        yield _answer(reached)


def _answer(reached: ProviderStatus) -> Finding:
    error = reached.error
    if error is None:
        models = f"{len(reached.known.models)} models" if reached.known else "it has no list of models"
        if reached.address and reached.known and len(reached.known.models) <= MAX_NAMES:
            models = ", ".join(
                f"`{model.name}`" + (f" reads {model.context_tokens:,} tokens" if model.context_tokens else "")
                for model in reached.known.models
            )
        return Finding("providers", "ok", f"{reached.title} answers: {models}")
    refused = isinstance(error, RequestError) and error.status in REFUSED
    fix = f"koi connect {reached.address or reached.provider}" if refused else ""
    return Finding("providers", "error", error.message, fix)


def servers_here(keys: Keys) -> Iterator[Finding]:
    """Whether an Ollama runs, and which servers on the usual ports of this machine nobody has connected."""
    used = {origin(str(each.base_url)) for each in list_connections(keys, project.models(keys.settings), looks=False)}
    for address, known in nearby_servers():
        if origin(address) not in used:
            names = ", ".join(f"`{name}`" for name in known.names[:MAX_NAMES])
            text = f"{known.models[0].server or 'a server'} at {origin(address)} is not connected: {names}"
            yield Finding("providers", "ok", text, f"koi connect {origin(address)}")
    try:
        models, address = models_at(ollama_address()), origin_of(ollama_address())
    except KoiError as error:
        yield Finding("providers", "error", error.message, "unset OLLAMA_HOST")
        return
    text = f"ollama answers: {len(models)} models" if models else f"no ollama at {address}"
    yield Finding("providers", "ok", text)


def check_preferences(keys: Keys, *, offline: bool) -> Iterator[Finding]:
    """Which models `koi.toml` names; whether that for embeddings is there, since no answer would tell."""
    try:
        usual = preferences(None, keys).usual
    except KoiError as error:
        yield Finding("models", "error", error.message, f"edit koi.toml: {error.help}" if error.help else "")
        return
    for role, options in usual.items():
        yield Finding("models", "ok", f"{role}: {name_of(options)}")
        # An address that comes with the project is given no key before something is run.
        if role == "embedding" and not offline and "base_url" not in options:
            yield _embedding(options, keys)


def _embedding(options: Mapping[str, Any], keys: Keys) -> Finding:
    try:
        connection = asyncio.run(embedding_reached(options, keys))
    except KoiError as error:
        return Finding("models", "error", f"embedding: {error.message}", f"edit koi.toml: {error.help}")
    return Finding("models", "ok", f"embedding: {connection.provider.name} answers for `{connection.model}`")
