"""The servers of a run: each is started when it is first used, again when it was lost, and ends with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from koi_lang.errors import KoiError
from koi_lang.runtime import late
from koi_lang.runtime.agents.declared import Mcp
from koi_lang.runtime.mcp.configured import options_of
from koi_lang.runtime.mcp.offers import Offer, as_data
from koi_lang.runtime.mcp.text import quoted
from koi_lang.runtime.tasks import gathered

if TYPE_CHECKING:
    from koi_lang.runtime.mcp.connection import Connection

# A declaration, or the name of a server that files of the folder describe.
Key: TypeAlias = Mcp | str


class Servers:
    """The connections of a run. `open` and `close` are called by the task that the run belongs to.

    Args:
        folder: where `.mcp.json` and `koi.toml` are looked for.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder
        self._group = asyncio.TaskGroup()
        self._connections: dict[Key, Connection] = {}
        self._known: dict[Key, Offer] = {}

    async def open(self) -> None:
        """Get ready; nothing is connected yet."""
        await self._group.__aenter__()

    async def close(self) -> None:
        """End all connections, and wait until nothing is left of them."""
        for connection in self._connections.values():
            connection.stop()
        await self._group.__aexit__(None, None, None)

    async def connected(self, server: Mcp) -> Connection:
        """The live connection to a server, its tools as they are now. Raises KoiError when it cannot be reached."""
        key = _key(server)
        connection = self._connections.get(key)
        if connection is None or connection.over:
            connection = await self._begun(key, server.name, self._options(server))
        await connection.wait_until_ready()
        if await connection.renew() or key not in self._known or self._known[key].problem:
            self._known[key] = _offer_of(connection)
        return connection

    async def _begun(self, key: Key, name: str, options: Mapping[str, Any]) -> Connection:
        """A connection that may still be opening."""
        # What connects and checks takes about a second to load: in a thread, so that other agents go on meanwhile.
        await asyncio.to_thread(lambda: (late.Connection, late.Checks))
        connection = self._connections.get(key)
        if connection is None or connection.over:  # else somebody has begun it meanwhile
            connection = self._connections[key] = late.Connection(name, options)
            _begin(self._group, connection)
        return connection

    def _options(self, server: Mcp) -> Mapping[str, Any]:
        return options_of(server.name, self._folder) if server.options is None else server.options()

    # ------------------------------------------------------------ prompts

    async def offers(self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]]) -> dict[str, Any]:
        """What several servers offer, started if need be, as data for a prompt.

        Args:
            members: tools that are members of teams, by address.
        """
        used = {_key(server): server for server in (*servers, *(server for server, _ in members.values()))}
        await gathered(self._look(server) for server in used.values())
        return self._told(servers, members)

    async def news(
        self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]], before: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The same without starting anything; None when nothing has changed since then."""
        used = {_key(server): server for server in (*servers, *(server for server, _ in members.values()))}
        live = [key for key in used if key in self._connections and not self._connections[key].over]
        await gathered(self._look(used[key]) for key in live)
        now = self._told(servers, members)
        return None if now == before else now

    async def _look(self, server: Mcp) -> None:
        try:
            await self.connected(server)
        except KoiError as error:
            told = f"{error.message}. {error.help}" if error.help else error.message
            self._known[_key(server)] = Offer(server.name, problem=told)

    def _told(self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]]) -> dict[str, Any]:
        offers = [self._known.get(_key(server), Offer(server.name)) for server in servers]
        return as_data(offers, {address: self._of_member(*member) for address, member in members.items()})

    def _of_member(self, server: Mcp, name: str) -> str:
        """The parameters of a tool and what its server says about it."""
        offer = self._known.get(_key(server), Offer(server.name))
        tool = next((tool for tool in offer.tools if tool.name == name), None)
        if tool is None:
            return f"() {quoted(offer.problem or 'the server has no such tool')}"
        return f"({tool.takes}) {quoted(tool.description)}".rstrip()


def _key(server: Mcp) -> Key:
    return server.name if server.options is None else server


def _offer_of(connection: Connection) -> Offer:
    able = connection.abilities
    tools, resources, prompts = tuple(connection.tools.values()), able.resources is not None, able.prompts is not None
    return Offer(connection.name, tools, resources=resources, prompts=prompts)


def _begin(group: asyncio.TaskGroup, connection: Connection) -> None:
    """Run a connection in a task that knows nothing of the call that needs it first."""
    group.create_task(connection.serve(), context=Context())
