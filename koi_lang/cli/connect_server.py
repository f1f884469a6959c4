"""`koi connect` for an MCP server that wants a person to sign in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import click

from koi_lang.cli.ui.text import count_text
from koi_lang.errors import KoiError, UsageError
from koi_lang.llm.providers import PROVIDERS
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError
from koi_lang.runtime.mcp.configured import options_of
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.runtime.mcp.sign_in import PersonSignIn, token_name
from koi_lang.sessions.browser import sign_in_with
from koi_lang.settings import ProjectSettings, project
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.keys.store import KEYRING


def is_server(name: str, keys: Keys) -> bool:
    """Whether a name is the address of a server, or one that settings describe and no provider has."""
    is_provider = name.lower() in {row.name for row in PROVIDERS}
    return "://" in name or (not is_provider and name in project.mcp_servers(keys.settings))


def connect_server(name: str, keys: Keys, *, no_browser: bool) -> None:
    """Sign in to a server, unless that is done, and say what it offers. Raises KoiError."""
    server = _server(name, keys.settings)
    options = server.options() if server.options else {}
    sign_in = sign_in_with(keys)
    sign_in.read_redirect = _read_pasted_address if no_browser else None
    count = asyncio.run(_tools(server, keys.settings, PersonSignIn(sign_in, _Asker())))
    place = keys.store.places().get(token_name(str(options["url"])))
    where = "the keyring of this system" if place == KEYRING else f"`{keys.store.path}`, which only you can read"
    kept = f"; its tokens are in {where}" if place else " and wants nobody to sign in"
    click.echo(f"{server.name} is connected and offers {count_text(count, 'tool')}{kept}")


def forget_server(name: str, keys: Keys) -> None:
    """Remove the tokens of a server. Raises KoiError."""
    server = _server(name, keys.settings)
    url = str(server.options()["url"]) if server.options else ""
    removed = keys.store.forget(token_name(url))
    message = f"the tokens were removed from the {' and the '.join(removed)}" if removed else "koi keeps no tokens"
    click.echo(f"{server.name}: {message}")


def _server(name: str, settings: ProjectSettings) -> Mcp:
    """A server by its address or its name. Raises UsageError for one that is not reached over HTTP."""
    options: Mapping[str, Any] = {"url": name} if "://" in name else options_of(name, settings)
    host = urlsplit(str(options.get("url", ""))).hostname
    if not host:
        help = "Only servers with a `url` want people to sign in; the others need no `koi connect`."
        raise UsageError(f"`{name}` is no MCP server that is reached over HTTP", help=help)
    return Mcp(host if "://" in name else name, lambda: options)


async def _tools(server: Mcp, settings: ProjectSettings, person: PersonSignIn) -> int:
    """How many tools a server offers to whoever has signed in."""
    async with together() as group:
        servers = Servers(group, settings, person=person)
        try:
            return len((await servers.connect(server)).tools)
        finally:
            servers.stop()


async def _read_pasted_address() -> str:
    """The address to which a browser elsewhere was led."""
    click.echo("open it with any browser, and copy the address that it shows at the end, also of an error", err=True)
    if sys.stdin.isatty():
        click.echo("address: ", nl=False, err=True)
    line = str(await asyncio.to_thread(sys.stdin.readline)).strip()
    if not line:
        raise KoiError("no address was given", help="Paste it, or pipe it in.")
    return line


class _Asker:
    """A host for somebody who has asked to sign in."""

    def print(self, text: str) -> None:
        """Say something."""
        click.echo(text)

    def log(self, text: str) -> None:
        """Say something beside."""
        click.echo(text, err=True)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Refuse: this is not about questions. Raises NobodyToAskError."""
        raise NobodyToAskError(f"nobody can answer: {question}")

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Agree: the command is the consent."""
        return ApprovalDecision("yes")

    async def secret(self, name: str) -> str:
        """Refuse. Raises NobodyToAskError."""
        raise NobodyToAskError(f"nobody can be asked for `{name}`")
