"""`koi disconnect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.connection import Provider
from koi_lang.llm.providers import PROVIDERS, provider_named
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    from koi_lang.cli import connect_server
    from koi_lang.cli.ui import selection
else:
    connect_server = lazy_module("koi_lang.cli.connect_server")
    selection = lazy_module("koi_lang.cli.ui.selection")

ALL = "all"


@click.command()
@click.argument("provider", required=False)
def command(provider: str | None) -> None:
    """Remove every copy of the key of PROVIDER that koi has kept; `all` removes those of all providers.

    For the address of an MCP server, or its name, remove the tokens of a sign-in.
    """
    keys = Keys(Path.cwd())
    name = provider or _pick_provider(keys)
    if connect_server.is_server(name, Path.cwd()):
        connect_server.forget_server(name, keys)
        return
    rows = [row for row in PROVIDERS if row.keys] if name == ALL else [provider_named(name)]
    removed = [row for row in rows if _remove(row, keys)]
    if not removed:
        click.echo(f"koi keeps no key{'' if name == ALL else f' of {rows[0].name}'}")
    for row in rows:
        _tell_rest(row, keys)


def _pick_provider(keys: Keys) -> str:
    kept = keys.store.places()
    names = [row.name for row in PROVIDERS if any(name in kept for name in row.keys)]
    if not names:
        raise UsageError("koi keeps no key", help="`koi connect PROVIDER` keeps one.")
    options = [(name, name) for name in (*names, ALL)]
    return selection.pick_one(
        "Whose key is to be removed?", options, otherwise=f"Write one of {', '.join((*names, ALL))}."
    )


def _remove(row: Provider, keys: Keys) -> bool:
    """Remove what is kept for a provider, under each of its names; says whether there was anything."""
    places = [place for name in row.keys for place in keys.store.forget(name)]
    if places:
        click.echo(f"{row.name}: the key was removed from the {' and the '.join(dict.fromkeys(places))}")
    return bool(places)


def _tell_rest(row: Provider, keys: Keys) -> None:
    """Name the places that still have a key; those belong to the person."""
    for copy in keys.copies(row.keys[0]) if row.keys else ():
        place = "`.env`" if copy.place == ".env" else f"the {copy.place}"
        click.echo(f"note: {place} still has `{copy.name}`, which koi does not touch", err=True)
