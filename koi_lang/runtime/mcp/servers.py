"""The servers of a run: each is started when it is first used, again when it was lost, and ends with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context

from koi_lang.errors import AgentError
from koi_lang.runtime.agents.declared import Mcp
from koi_lang.runtime.mcp.connection import Connection
from koi_lang.runtime.mcp.tools import clipped
from koi_lang.runtime.tasks import gathered

MOST_TOLD = 1000


class Servers:
    """The connections of a run. `open` and `close` are called by the task that the run belongs to."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._connections: dict[Mcp, Connection] = {}

    async def open(self) -> None:
        """Get ready; nothing is connected yet."""
        await self._group.__aenter__()

    async def close(self) -> None:
        """End all connections, and wait until nothing is left of them."""
        for connection in self._connections.values():
            connection.stop()
        await self._group.__aexit__(None, None, None)

    async def connected(self, server: Mcp) -> Connection:
        """The live connection to a server. Raises AgentError when it cannot be reached."""
        connection = self._connections.get(server)
        if connection is None or connection.over:
            connection = self._connections[server] = Connection(server.name, server.options())
            _begin(self._group, connection)
        await connection.wait_until_ready()
        return connection

    async def offers(self, servers: Sequence[Mcp]) -> list[str]:
        """A line for each tool of several servers, and one for each server that cannot be reached."""
        each = await gathered(self._offer(server) for server in servers)
        return [line for lines in each for line in lines]

    async def _offer(self, server: Mcp) -> list[str]:
        try:
            connection = await self.connected(server)
        except AgentError as error:
            told = clipped(" ".join(error.message.split()), MOST_TOLD)
            return [f"- {server.name} cannot be used now: {told}"]
        return [f"- {tool.line}" for tool in connection.tools] or [f"- {server.name} offers no tools."]


def _begin(group: asyncio.TaskGroup, connection: Connection) -> None:
    """Run a connection in a task that knows nothing of the call that needs it first."""
    group.create_task(connection.serve(), context=Context())
