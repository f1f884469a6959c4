"""`koi models`."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from koi_lang.cli.picking import pick_one
from koi_lang.errors import EXIT_FAILED, MissingKey, ProviderError
from koi_lang.keys.lookup import Keys
from koi_lang.llm.catalogue import provider_named
from koi_lang.llm.connection import Provider
from koi_lang.llm.known import Known
from koi_lang.llm.lists import Listed
from koi_lang.llm.models import PRICES_AS_OF
from koi_lang.reach import Reached, all_reached, ollama_address, set_up

MINUTE_S, HOUR_S = 60, 3600


@click.command()
@click.argument("provider", required=False)
@click.option("--refresh", is_flag=True, help="Ask the providers anew; lists are kept for a day.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list of providers with their models.")
def command(provider: str | None, refresh: bool, as_json: bool) -> None:
    """List the models of PROVIDER, or of all connected ones: tokens read and written, price per million, abilities."""
    keys = Keys(Path.cwd())
    found = asyncio.run(all_reached(_rows(provider, keys), keys, refresh=refresh))
    listed = [each for each in found if each.error is None]
    if provider and found[0].error is not None:
        raise found[0].error
    click.echo(json.dumps([_data(each) for each in listed], indent=2) if as_json else _page(listed))
    for each in found:
        if each.error is not None:
            click.echo(f"{each.provider}: {each.error.message}", err=True)
    sys.exit(0 if listed else EXIT_FAILED)


def _rows(provider: str | None, keys: Keys) -> list[Provider]:
    if provider:
        return [provider_named(provider)]
    rows = set_up(keys)
    if not rows:
        help = f"Keep a key with `koi connect`; an Ollama was looked for at `{ollama_address()}`."
        raise MissingKey("no provider is connected", help=help)
    return rows


def pick(keys: Keys) -> str:
    """The `provider/model` that a person picks from all that are connected. Raises KoiError."""
    found = asyncio.run(all_reached(_rows(None, keys), keys))
    options = [
        (f"{each.provider}/{model.name}", f"{each.provider}/{_line(model)}")
        for each in found
        for model in (each.known.models if each.known else ())
    ]
    if not options:
        error = next((each.error for each in found if each.error is not None), None)
        raise error or ProviderError("no provider tells which models it has", help="Name one: `-m provider/model`.")
    return pick_one("Which model?", options, otherwise="Write it as `-m provider/model`; `koi models` lists them.")


def _page(found: list[Reached]) -> str:
    parts = [f"{each.provider}  ({_age(each.known)})\n{_models(each.known)}" for each in found]
    return "\n\n".join(parts)


def _models(known: Known | None) -> str:
    return "\n".join(f"  {_line(model)}" for model in known.models) if known else "  it has no list of models"


def _line(model: Listed) -> str:
    sizes = f"{_size(model.context_tokens):>6} {_size(model.output_tokens):>6}"
    prices = f"${model.prices_usd[0]:g} / ${model.prices_usd[1]:g}" if model.prices_usd else "-"
    return f"{model.name:<44} {sizes}  {prices:<16} {' '.join(model.abilities)}".rstrip()


def _size(tokens: int | None) -> str:
    """A number of tokens as people say it: 128k, 1M."""
    if tokens is None:
        return "-"
    return f"{tokens / 1_000_000:.3g}M" if tokens >= 1_000_000 else f"{tokens / 1000:.3g}k"


def _age(known: Known | None) -> str:
    if known is None:
        return "no list"
    seconds = int(known.age_s())
    if seconds < MINUTE_S:
        return "asked just now"
    if seconds < HOUR_S:
        return f"asked {seconds // MINUTE_S} min ago"
    return f"asked {seconds // HOUR_S} h ago"


def _data(found: Reached) -> dict[str, Any]:
    models = [asdict(model) for model in found.known.models] if found.known else []
    asked = found.known.asked if found.known else None
    return {"provider": found.provider, "asked": asked, "prices_as_of": PRICES_AS_OF, "models": models}
