"""The servers of a run: each is started when it is first used, again when it was lost, and ends with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from koi_lang.diagnostics import nearest
from koi_lang.errors import KoiError
from koi_lang.grants import KINDS, matches, of_kind
from koi_lang.lazy import lazy_module
from koi_lang.runtime.agents.declarations import Mcp, by_name
from koi_lang.runtime.concurrency.tasks import gather
from koi_lang.runtime.mcp import validation
from koi_lang.runtime.mcp.configured import access_to, is_process, options_of
from koi_lang.runtime.mcp.permissions import Rules, ServerAccess
from koi_lang.runtime.mcp.safe_text import one_line
from koi_lang.runtime.mcp.sign_in import PersonSignIn
from koi_lang.runtime.mcp.tool_catalog import MemberTool, ServerCatalog, as_data
from koi_lang.settings import ProjectSettings

if TYPE_CHECKING:
    from koi_lang.runtime.mcp import connection as connections
    from koi_lang.runtime.mcp.connection import McpConnection
else:
    connections = lazy_module("koi_lang.runtime.mcp.connection")

# What evaluates the options of a declaration, or the name of a server that settings describe.
Key: TypeAlias = Callable[[], Mapping[str, Any]] | str


class Servers:
    """The connections of a run; none is begun before it is asked for.

    Args:
        group: of the task that the run belongs to; connections are its tasks, which end after `stop`.
        settings: of the project, which may describe servers and have rules for any.
        note: is told what somebody may have got wrong, a line each.
        person: signs in where a server wants it; None where nobody can.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        settings: ProjectSettings,
        note: Callable[[str], None] = lambda line: None,
        person: PersonSignIn | None = None,
    ) -> None:
        self._group = group
        self._settings = settings
        self._note = note
        self._person = person
        self._noted: set[str] = set()
        self._rules: dict[Key, Rules] = {}
        self._connections: dict[Key, McpConnection] = {}
        self._known: dict[Key, ServerCatalog] = {}

    def stop(self) -> None:
        """Have all connections end; they have when their tasks have."""
        for connection in self._connections.values():
            connection.stop()

    async def connect(self, server: Mcp) -> McpConnection:
        """The live connection to a server, its tools as they are now. Raises KoiError when it cannot be reached."""
        key = _key(server)
        connection = self._connections.get(key)
        if connection is None or connection.over:
            options = options_of(server.name, self._settings) if server.options is None else server.options()
            connection = await self._begun(key, server.name, options)
        await connection.wait_until_ready()
        if await connection.renew() or key not in self._known or self._known[key].problem:
            self._known[key] = _offer_of(connection)
        self._note_unmatched(self.access(server), connection)
        return connection

    def access(self, server: Mcp) -> ServerAccess:
        """The access to a server. Raises SettingsError when its rules are broken."""
        key = _key(server)
        if key not in self._rules:
            self._rules[key] = access_to(server, self._settings).rules
        return ServerAccess(server, self._rules[key])

    def _note_unmatched(self, access: ServerAccess, connection: McpConnection) -> None:
        """Tell once of patterns that cover no tool: they grant, ask or deny nothing."""
        server, rules = access.server, access.rules
        used = {f"uses mcp {server.name}({pattern})": pattern for pattern in server.granted or ()}
        used |= {f"ask of the MCP server {server.name}: {pattern}": pattern for pattern in rules.ask}
        used |= {f"deny of the MCP server {server.name}: {pattern}": pattern for pattern in rules.deny}
        for place, pattern in used.items():
            is_for_tools = bool(of_kind([pattern]))
            if is_for_tools and place not in self._noted and not any(matches(pattern, t) for t in connection.tools):
                self._noted.add(place)
                near = nearest(pattern.replace("*", ""), list(connection.tools))
                self._note(f"`{place}` covers no tool" + (f"; did you mean `{one_line(near)}`?" if near else ""))

    async def _begun(self, key: Key, name: str, options: Mapping[str, Any]) -> McpConnection:
        """A connection that may still be opening."""
        # What connects and checks takes about a second to load: in a thread, so that other agents go on meanwhile.
        await asyncio.to_thread(lambda: connections.McpConnection)
        await asyncio.to_thread(validation.load)
        connection = self._connections.get(key)
        if is_process(options) and isinstance(folder := options.get("cwd") or "", str):
            # Paths in its options are those of the project, wherever this process was started.
            options = {**options, "cwd": str(self._settings.folder / folder)}
        if connection is None or connection.over:  # else somebody has begun it meanwhile
            connection = self._connections[key] = connections.McpConnection(name, options, self._person, self._note)
            _begin(self._group, connection)
        return connection

    # ------------------------------------------------------------ prompts

    async def offers(self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]]) -> dict[str, Any]:
        """The tools of several servers, started if need be, as data for a prompt.

        Args:
            members: tools that are members of teams, by address.
        """
        used = {_key(server): server for server in (*servers, *(server for server, _ in members.values()))}
        await gather(self._look(server) for server in used.values())
        return self._catalog_data(servers, members)

    async def news(
        self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]], before: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The same without starting anything; None when nothing has changed since then."""
        used = {_key(server): server for server in (*servers, *(server for server, _ in members.values()))}
        live = [key for key in used if key in self._connections and not self._connections[key].over]
        await gather(self._look(used[key]) for key in live)
        now = self._catalog_data(servers, members)
        return None if now == before else now

    def catalog(self, servers: Sequence[Mcp]) -> list[ServerCatalog]:
        """The tools of servers as far as they are known now; nothing is started."""
        return [self._catalog_of(server) for server in by_name(servers).values()]

    async def _look(self, server: Mcp) -> None:
        try:
            await self.connect(server)
        except KoiError as error:
            message = f"{error.message}. {error.help}" if error.help else error.message
            self._known[_key(server)] = ServerCatalog(server.name, problem=message)

    def _catalog_data(self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]]) -> dict[str, Any]:
        return as_data(self.catalog(servers), {address: self._member(*member) for address, member in members.items()})

    def _catalog_of(self, server: Mcp) -> ServerCatalog:
        """The accessible tools of a server."""
        offer = self._known.get(_key(server), ServerCatalog(server.name))
        access = ServerAccess(server, self._rules.get(_key(server), Rules()))
        tools = tuple(tool for tool in offer.tools if access.shows(tool.name))
        has_resources, has_prompts = (access.has(kind) for kind in KINDS)
        return replace(
            offer, tools=tools, resources=offer.resources and has_resources, prompts=offer.prompts and has_prompts
        )

    def _member(self, server: Mcp, name: str) -> MemberTool:
        offer = self._known.get(_key(server), ServerCatalog(server.name))
        tool = next((tool for tool in offer.tools if tool.name == name), None)
        return MemberTool(tool, offer.problem)


def _key(server: Mcp) -> Key:
    """The identity of a server, independent of grants."""
    return server.name if server.options is None else server.options


def _offer_of(connection: McpConnection) -> ServerCatalog:
    able = connection.abilities
    tools = tuple(tool for tool in connection.tools.values() if not tool.needs_task)
    return ServerCatalog(connection.name, tools, resources=able.resources is not None, prompts=able.prompts is not None)


def _begin(group: asyncio.TaskGroup, connection: McpConnection) -> None:
    """Run a connection in a task that knows nothing of the call that needs it first."""
    group.create_task(connection.serve(), context=Context())
