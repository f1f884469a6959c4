"""`koi connect`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_provider
from koi_lang.diagnostics import nearest
from koi_lang.errors import REFUSED, AgentError, KoiError, ProviderError, RequestError, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.connect import connection_to
from koi_lang.llm.connection import Provider
from koi_lang.llm.local_servers import ADDRESS_VARIABLE, LOCAL, is_address, read_address, require_scheme, server_title
from koi_lang.llm.model_choice import ModelChoice
from koi_lang.llm.ollama import models_at, origin_of
from koi_lang.llm.providers import PROVIDERS, STAND_INS, provider_named
from koi_lang.settings import read_settings
from koi_lang.setup.availability import check_connection, check_provider, nearby_servers, ollama_address
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.keys.store import KEYRING
from koi_lang.setup.search_services import SEARCH_SERVICES, search_service

if TYPE_CHECKING:
    from koi_lang.cli import connect_server
    from koi_lang.cli.ui import selection
else:
    connect_server = lazy_module("koi_lang.cli.connect_server")
    selection = lazy_module("koi_lang.cli.ui.selection")


MAX_NAMES = 5
# How addresses of servers of models end, and those of MCP servers; others are asked what they are.
VERSION = re.compile(r"v\d+")
MCP_PATHS = ("mcp", "sse")
START_HELP = "Start it, or write another address, such as `koi connect http://127.0.0.1:8080/v1`."


@click.command()
@click.argument("provider", required=False, shell_complete=complete_provider)
@click.option("--status", is_flag=True, help="Show which providers have a key, and where it is.")
@click.option("--no-test", is_flag=True, help="Keep the key without asking the provider about it.")
@click.option("--no-browser", is_flag=True, help="Sign in to an MCP server with a browser on another machine.")
@click.option("--json", "as_json", is_flag=True, help="Show the status as one JSON list.")
def command(provider: str | None, status: bool, no_test: bool, no_browser: bool, as_json: bool) -> None:
    """Keep a key for PROVIDER, typed here or piped in; `status` shows what is connected.

    `brave` and `tavily` search the web.

    For the address of a server of models, such as http://127.0.0.1:8080/v1, keep that; it needs no key.

    For the address of an MCP server, or its name in koi.toml or .mcp.json, sign in with a browser.
    """
    keys = Keys(read_settings())
    if status or provider == "status":
        click.echo(json.dumps(_states(keys), indent=2) if as_json else _table(_states(keys)))
        return
    name = provider or _pick_provider(keys)
    if _keep_address(name, keys):
        return
    if connect_server.is_server(name, keys):
        try:
            connect_server.connect_server(name, keys, no_browser=no_browser)
        except AgentError as error:
            if error.help or not is_address(name) or name.rstrip("/").lower().endswith(MCP_PATHS):
                raise
            message = f"neither a server of models nor an MCP server answers at `{name.partition('?')[0]}`"
            help = "Write the whole address, such as `http://127.0.0.1:8080/v1` for models, or `https://…/mcp`."
            raise UsageError(message, help=help) from error
        return
    if name.lower() in STAND_INS:
        message = f"`{name}` stands in for a model within koi, so there is nothing to connect"
        raise UsageError(message, help=f"These can be connected: {', '.join(row.name for row in PROVIDERS)}.")
    if (service := search_service(name)) is not None:
        _keep_key(f"{service.name} is connected", service.key, _read_key(service.name), keys)
        return
    row = provider_named(name)
    if not row.keys:
        _meet_ollama()
        return
    value = _read_key(row.name)
    count = "" if no_test else _test_key(row, value, keys)
    _keep_key(f"{row.name} is connected{count}", row.keys[0], value, keys)


def _keep_key(told: str, variable: str, value: str, keys: Keys) -> None:
    """Keep a key, and say where it is and what counts before it."""
    others = [copy.place for copy in keys.copies(variable) if copy.place not in (KEYRING, "file")]
    place = keys.store.keep(variable, value)
    where = "the keyring of this system" if place == KEYRING else f"`{keys.store.path}`, which only you can read"
    click.echo(f"{told}; the key is in {where}")
    if others:
        click.echo(f"note: the key in {_place(others[0])} counts before it", err=True)


def _pick_provider(keys: Keys) -> str:
    """The provider that the person picks."""
    places = {state["provider"]: state["place"] for state in _states(keys)}
    labels = [(row.name, f"{row.name}  ({places[row.name]})" if row.name in places else row.name) for row in PROVIDERS]
    otherwise = f"Write `koi connect PROVIDER`, one of {', '.join(row.name for row in PROVIDERS)}."
    return selection.pick_one("Which provider?", labels, otherwise=otherwise)


def _read_key(name: str) -> str:
    """The key: typed without being shown, or the first line of what is piped in."""
    if sys.stdin.isatty():
        value = click.prompt(f"Key of {name}", hide_input=True, err=True, default="", show_default=False)
    else:
        value = sys.stdin.readline()
    value = str(value).removeprefix("\ufeff").strip()  # PowerShell writes it
    if not value:
        help = f"Type it, or pipe it in: `koi connect {name} < key.txt`."
        raise UsageError(f"no key was given for `{name}`", help=help)
    if not value.isprintable() or not value.isascii() or " " in value:
        raise UsageError("this is no key: it has spaces or special characters", help="Copy it once more, alone.")
    return value


def _test_key(row: Provider, value: str, keys: Keys) -> str:
    """How many models the key gives. Raises ProviderError when the provider does not take it."""
    typed = Keys(keys.settings, given=dict.fromkeys(row.keys, value), store=keys.store)
    found = asyncio.run(check_provider(row.name, typed, refresh=True, try_out=True))
    if found.error is not None:
        raise _not_kept(row, found.error)
    return f" and offers {len(found.known.models)} models" if found.known else ""


def _not_kept(row: Provider, error: KoiError) -> KoiError:
    if isinstance(error, RequestError) and error.status in REFUSED:
        help = f"Copy the key once more from your account at {row.name}, then `koi connect {row.name}` again."
        return ProviderError(f"`{row.name}` does not accept this key, so it was not kept", help=help)
    help = f"Try again later, or keep the key untested with `koi connect {row.name} --no-test`."
    return ProviderError(f"the key was not kept, because it could not be tested: {error.message}", help=help)


def _keep_address(name: str, keys: Keys) -> bool:
    """Keep the address of a server of models, and say what it has; false where it may be one of an MCP server.

    Raises:
        KoiError: it is meant to be one, and does not answer, or does not take the key.
    """
    if name.lower() == LOCAL:
        example = next((address for address, _ in nearby_servers()), "http://127.0.0.1:8080/v1")
        help = f"Write for example `koi connect {example}`."
        raise UsageError("a server of your own is connected by its address", help=help)
    require_scheme(name, "connect")
    path = name.partition("#")[0].partition("://")[2].partition("/")[2].rstrip("/")
    end = path.rpartition("/")[2].lower()
    if not is_address(name) or end in MCP_PATHS:
        return False
    is_meant = VERSION.fullmatch(end) is not None
    try:
        base_url, model = read_address(name)
    except UsageError:  # with a query it may be an address of another kind
        if is_meant or path == "":
            raise
        return False
    place, title = ModelChoice(LOCAL, model, base_url), server_title(base_url)
    status = asyncio.run(check_connection(connection_to(place, {}, lambda variable: None)))
    value = ""
    is_refused = isinstance(status.error, RequestError) and status.error.status in REFUSED
    if is_refused and (is_meant or path == ""):
        value = _read_key(base_url)
        variables = {"LOCAL_API_KEY": value, ADDRESS_VARIABLE: base_url}
        status = asyncio.run(check_connection(connection_to(place, {}, variables.get)))
    if status.known is None:
        if not is_meant and (path != "" or status.error is None):
            return False
        raise status.error or ProviderError(f"no server of models answers at `{title}`", help=START_HELP)
    answering = [each.name for each in status.known.models if each.answers]
    names = [each for each in answering if model in ("", each)]
    if model and not names:
        near = nearest(model, answering)
        help = f"Did you mean `{near}`?" if near else f"It has {_names_text(answering) or 'none that answers'}."
        raise UsageError(f"`{title}` has no model `{model}`", help=help)
    keys.store.keep(ADDRESS_VARIABLE, f"{base_url}#{model}" if model else base_url, is_secret=False)
    server = status.known.models[0].server or "the server"
    uses = "`koi run -m local`" if len(names) == 1 else f"`koi run -m local/{names[0]}`" if names else "nothing"
    click.echo(f"{server} at {title} is connected as `local`: {_names_text(names)}; {uses} asks it")
    if value:
        _keep_key("its key is taken", "LOCAL_API_KEY", value, keys)
    return True


def _names_text(names: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")


def _meet_ollama() -> None:
    """Say whether an Ollama answers; it needs no key. Raises ProviderError when none does."""
    address = origin_of(ollama_address())
    models = models_at(ollama_address())
    if not models:
        help = "Start it with `ollama serve`, and get a model with `ollama pull llama3.2`."
        raise ProviderError(f"no Ollama with a model answers at `{address}`", help=help)
    click.echo(f"ollama needs no key; it answers at {address} and has {len(models)} models")


def _states(keys: Keys) -> list[dict[str, Any]]:
    """Which key counts for each provider that has one, and where else there is one."""
    states = []
    variables = [(row.name, row.keys[0]) for row in PROVIDERS if row.keys] + [(LOCAL, ADDRESS_VARIABLE)]
    for name, variable in (*variables, *((service.name, service.key) for service in SEARCH_SERVICES)):
        copies = list(keys.copies(variable))
        if copies:
            first, *others = copies
            shown = first.value if variable == ADDRESS_VARIABLE else first.masked_key
            about = {"place": first.place, "variable": first.name, "key": shown}
            states.append({"provider": name, **about, "also": [other.place for other in others]})
    return states


def _table(states: list[dict[str, Any]]) -> str:
    if not states:
        return "no provider is connected; `koi connect PROVIDER` keeps a key"
    rows = []
    for state in states:
        also = f"  (also in {', '.join(map(_place, state['also']))}, not used)" if state["also"] else ""
        rows.append(f"{state['provider']:<11} {state['place']:<12} {state['variable']:<24} {state['key']}{also}")
    return "\n".join(rows)


def _place(place: str) -> str:
    return f"`{place}`" if place.startswith(".") else f"the {place}"
