"""A server as a value of code, and a tool of a server as a member of a team."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import new_class
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler, Mcp, Role

ROLE = Role("mcp", ("call_mcp",))
# What code asks every value for when it prints or converts it.
NOT_TOOLS = frozenset({"toJSON", "toString", "valueOf", "then", "constructor", "inspect"})


class McpServer:
    """A server as an agent's code sees it: `await files.read({ path: "a" })` calls the tool `read`.

    A tool that is called as one of the functions here is reached with `files.call("prompt", {…})`.
    """

    __slots__ = ("_agent", "_name")

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent, self._name = agent, name

    def __repr__(self) -> str:
        return f"[MCP server: {self._name}]"

    def __getattr__(self, tool: str) -> Callable[..., Awaitable[Any]]:
        if tool.startswith("_") or tool in NOT_TOOLS:
            raise AttributeError(tool)

        async def call(input: Any = undefined) -> Any:
            return await self.call(tool, input)

        return call

    async def call(self, tool: str, input: Any = undefined) -> Any:
        """The result of a tool. Raises AgentError when there is no such tool, or it fails."""
        return await self._do("call_mcp", tool=tool, input=self._object(tool, input))

    async def resource(self, uri: Any = undefined) -> Any:
        """A document of the server; without an address, a list of all."""
        return await self._do("mcp_read_resource", **({} if uri is undefined else {"uri": uri}))

    async def prompt(self, name: Any = undefined, input: Any = undefined) -> Any:
        """The text of a prompt of the server; without a name, a list of all."""
        if name is undefined:
            return await self._do("mcp_get_prompt")
        return (await self._do("mcp_get_prompt", prompt=name, input=self._object(name, input)))["text"]

    async def _do(self, action: str, **fields: Any) -> Any:
        return await self._agent.call_action(action, {"mcp": self._name, **fields})

    def _object(self, name: Any, input: Any) -> dict[str, Any]:
        if input is undefined or input is None:
            return {}
        if not isinstance(input, dict):
            help = f"Write `{self._name}.{name}({{ name: value }})`."
            raise AgentError(f"`{self._name}.{name}` takes one object with its parameters", help=help)
        return input


def server(agent: Agent, name: str) -> McpServer:
    """A server that an agent uses, for the code of its handlers."""
    return McpServer(agent, name)


class RemoteAgent(Agent, koi_name="mcp"):
    """A tool of a server in the place of an agent; subclasses are the members of teams.

    Attributes:
        origin: the server and the name of the tool.
    """

    origin: tuple[Mcp, str]


def tool(of: Mcp, name: str) -> type[RemoteAgent]:
    """A member of a team that handles one event, called as the tool: by calling it."""

    async def handle(this: Agent, args: Any = undefined) -> Any:
        return await McpServer(this, of.name).call(name, args)

    handler = Handler(name, handle, f"a tool of the MCP server {of.name}")
    # The address grants this tool and no other of its server.
    declared = {"koi_name": f"mcp://{of.name}/{name}", "role": lambda: ROLE, "mcps": lambda: [of.only(name)]}
    return new_class(
        "Remote", (RemoteAgent,), declared, lambda body: body.update({name: handler, "origin": (of, name)})
    )
