"""`koi models`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import click

from koi_lang.cli.completing.values import complete_provider
from koi_lang.cli.ui.selection import pick_one
from koi_lang.errors import EXIT_FAILED, MissingKeyError, ProviderError
from koi_lang.llm import local_servers
from koi_lang.llm.cards import PRICES_AS_OF
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.model_list_cache import CachedModelList
from koi_lang.llm.model_listing import ModelInfo
from koi_lang.llm.models import card_of
from koi_lang.llm.providers import provider_named
from koi_lang.settings import project, read_settings
from koi_lang.setup.availability import ProviderStatus, all_reached, connection_of, list_connections, ollama_address
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.preferences import name_of

MINUTE_S, HOUR_S = 60, 3600
Row: TypeAlias = tuple[str, str, str, str, str]
HEADING: Row = ("model", "reads", "writes", "in/out per million", "abilities")
SIDES = (str.ljust, str.rjust, str.rjust, str.ljust, str.ljust)
LONGER = "+ long requests cost more"


@click.command()
@click.argument("provider", required=False, shell_complete=complete_provider)
@click.option("--refresh", is_flag=True, help="Ask the providers anew; lists are kept for a day.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list of providers with their models.")
def command(provider: str | None, refresh: bool, as_json: bool) -> None:
    """List the models of PROVIDER, or of all connected ones: tokens read and written, price per million, abilities.

    PROVIDER may be the address of a server of models, such as http://127.0.0.1:8080/v1.

    Without PROVIDER also those that `koi.toml` names, by role.
    """
    found = asyncio.run(all_reached(_connections(provider, Keys(read_settings())), refresh=refresh))
    listed = [each for each in found if each.error is None]
    if provider and found[0].error is not None:
        raise found[0].error
    roles = {} if provider or as_json else project.models(read_settings())
    click.echo(
        json.dumps([_data(each) for each in listed], indent=2) if as_json else _page(listed) + _format_roles(roles)
    )
    for each in found:
        if each.error is not None:
            click.echo(f"{each.title}: {each.error.message}", err=True)
    sys.exit(0 if listed else EXIT_FAILED)


def _connections(provider: str | None, keys: Keys) -> list[ProviderConnection]:
    usual = project.models(read_settings())
    if provider and local_servers.is_address(provider):
        return [connection_of(provider, keys)]
    if provider:
        local_servers.require_scheme(provider, "models")
        name = provider_named(provider).name
        found = [each for each in list_connections(keys, usual, looks=False) if each.provider.name == name]
        return found or [connection_of(name, keys)]
    found = list_connections(keys, usual)
    if not found:
        help = f"Keep a key with `koi connect`; an Ollama was looked for at `{ollama_address()}`."
        raise MissingKeyError("no provider is connected", help=help)
    return found


def pick(keys: Keys) -> str:
    """The `provider/model` that a person picks from all that are connected. Raises KoiError."""
    found = asyncio.run(all_reached(_connections(None, keys)))
    rows = [
        _cells(model, f"{each.provider}/{model.name}")
        for each in found
        for model in (each.known.models if each.known else ())
        if model.answers
    ]
    options = [(row[0], line) for row, line in zip(rows, _align_columns(rows), strict=True)]
    if not options:
        error = next((each.error for each in found if each.error is not None), None)
        raise error or ProviderError("no provider tells which models it has", help="Name one: `-m provider/model`.")
    return pick_one("Which model?", options, otherwise="Write it as `-m provider/model`; `koi models` lists them.")


def _page(found: list[ProviderStatus]) -> str:
    parts = [f"{each.title}  ({_age(each.known)})\n{_models(each.known)}" for each in found]
    return "\n\n".join(parts)


def _format_roles(roles: Mapping[str, Mapping[str, Any]]) -> str:
    """The models that `koi.toml` names, as a part of the page."""
    lines = [f"  {role:<12} {name_of(options)}" for role, options in roles.items()]
    return "\n\n" + "\n".join(["koi.toml", *lines]) if lines else ""


def _models(known: CachedModelList | None) -> str:
    if known is None:
        return "  it has no list of models"
    lines = _align_columns([HEADING, *(_cells(model, model.name) for model in known.models)])
    note = [LONGER] if any(_costs_more(model) for model in known.models) else []
    return "\n".join(f"  {line}" for line in [*lines, *note])


def _cells(model: ModelInfo, name: str) -> Row:
    """What is shown of a model; a `+` marks a price that is not the highest."""
    prices = " / ".join(f"${price:g}" for price in model.prices_usd or ()) + "+" * _costs_more(model) or "-"
    return name, _size(model.context_tokens), _size(model.output_tokens), prices, " ".join(model.abilities)


def _costs_more(model: ModelInfo) -> bool:
    return model.prices_usd is not None and card_of(model.name).longer is not None


def _align_columns(rows: Sequence[Row]) -> list[str]:
    """Lines with their columns below each other, as narrow as they can be; the last one may be broken anywhere."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[side(cell, width) for side, cell, width in zip(SIDES, row, widths, strict=True)] for row in rows]
    return ["  ".join(row).rstrip() for row in cells]


def _size(tokens: int | None) -> str:
    """A number of tokens as people say it: 128k, 1M."""
    if tokens is None:
        return "-"
    return f"{tokens / 1_000_000:.3g}M" if tokens >= 1_000_000 else f"{tokens / 1000:.3g}k"


def _age(known: CachedModelList | None) -> str:
    if known is None:
        return "no list"
    seconds = int(known.age_s())
    if seconds < MINUTE_S:
        return "asked just now"
    if seconds < HOUR_S:
        return f"asked {seconds // MINUTE_S} min ago"
    return f"asked {seconds // HOUR_S} h ago"


def _data(found: ProviderStatus) -> dict[str, Any]:
    models = [asdict(model) for model in found.known.models] if found.known else []
    asked = found.known.asked if found.known else None
    where = {"address": found.address} if found.address else {}
    return {"provider": found.provider, **where, "asked": asked, "prices_as_of": PRICES_AS_OF, "models": models}
