"""`koi disconnect`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from koi_lang.cli.completing.values import complete_provider
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.local_servers import ADDRESS_VARIABLE, LOCAL
from koi_lang.llm.providers import PROVIDERS, provider_named
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.search_services import SEARCH_SERVICES, search_service

if TYPE_CHECKING:
    from koi_lang.cli import connect_server
    from koi_lang.cli.ui import selection
else:
    connect_server = lazy_module("koi_lang.cli.connect_server")
    selection = lazy_module("koi_lang.cli.ui.selection")

ALL = "all"


@click.command()
@click.argument("provider", required=False, shell_complete=complete_provider)
def command(provider: str | None) -> None:
    """Remove every copy of the key of PROVIDER that koi has kept; `all` removes those of all providers.

    `local` stands for the address of a server of models, and its key.

    For the address of an MCP server, or its name, remove the tokens of a sign-in.
    """
    keys = Keys(read_settings())
    name = provider or _pick_provider(keys)
    for copy in keys.copies(ADDRESS_VARIABLE):
        address = copy.value.partition("#")[0]
        name = LOCAL if name.partition("#")[0].rstrip("/") in (address, address.removesuffix("/v1")) else name
    if connect_server.is_server(name, keys):
        connect_server.forget_server(name, keys)
        return
    known = _known_keys()
    service = search_service(name)
    names = list(known) if name == ALL else [service.name if service else provider_named(name).name]
    removed = [each for each in names if _remove(each, known.get(each, ()), keys)]
    if not removed:
        click.echo(f"koi keeps no key{'' if name == ALL else f' of {names[0]}'}")
    for each in names:
        _tell_rest(known.get(each, ()), keys)


def _known_keys() -> dict[str, Sequence[str]]:
    """The variables of the keys of all that can be connected, by its name."""
    rows = {row.name: row.keys for row in PROVIDERS if row.keys}
    rows[LOCAL] = (*rows[LOCAL], ADDRESS_VARIABLE)
    return {**rows, **{service.name: (service.key,) for service in SEARCH_SERVICES}}


def _pick_provider(keys: Keys) -> str:
    kept = keys.store.places()
    names = [name for name, variables in _known_keys().items() if any(each in kept for each in variables)]
    if not names:
        raise UsageError("koi keeps no key", help="`koi connect PROVIDER` keeps one.")
    options = [(name, name) for name in (*names, ALL)]
    return selection.pick_one(
        "Whose key is to be removed?", options, otherwise=f"Write one of {', '.join((*names, ALL))}."
    )


def _remove(name: str, variables: Sequence[str], keys: Keys) -> bool:
    """Remove what is kept for a provider, under each of its variables; says whether there was anything."""
    places = [place for each in variables for place in keys.store.forget(each)]
    if places:
        what = "address" if name == LOCAL else "key"
        click.echo(f"{name}: the {what} was removed from the {' and the '.join(dict.fromkeys(places))}")
    return bool(places)


def _tell_rest(variables: Sequence[str], keys: Keys) -> None:
    """Name the places that still have a key; those belong to the person."""
    for copy in keys.copies(variables[0]) if variables else ():
        place = "`.env`" if copy.place == ".env" else f"the {copy.place}"
        click.echo(f"note: {place} still has `{copy.name}`, which koi does not touch", err=True)
