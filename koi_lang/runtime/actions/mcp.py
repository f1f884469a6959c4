"""Actions that call tools of the MCP servers an agent uses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError
from koi_lang.runtime.actions.table import ActionContext, ActionError, action
from koi_lang.runtime.values.failures import ErrorValue
from koi_lang.runtime.values.json_text import parse

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from koi_lang.runtime.mcp.connection import Connection
    from koi_lang.runtime.mcp.tools import Tool


@action("call_mcp", aliases={"server": "mcp", "arguments": "input"}, lasting=True)
async def call_mcp(context: ActionContext, mcp: str, tool: str, input: dict[str, Any] | None = None) -> Any:
    """Call a tool of an MCP server; `input` is an object with its parameters."""
    connection = await _connected(context, mcp)
    found, arguments = _found(connection, tool), input or {}
    _check(found, arguments)
    return _data_of(found, await connection.call(tool, arguments))


@action("call_mcp", aliases={"server": "mcp"}, safe=True)
async def get_mcp_tool_info(context: ActionContext, mcp: str, tool: str) -> Any:
    """Describe a tool of an MCP server and all its parameters."""
    found = _found(await _connected(context, mcp), tool)
    parameters = found.parameters()
    return {
        "mcp": mcp,
        "tool": tool,
        "fullName": f"mcp__{mcp}__{tool}",
        "description": found.description,
        "annotations": dict(found.annotations),
        "parameters": parameters,
        "requiredParameters": [parameter["name"] for parameter in parameters if parameter["required"]],
        "optionalParameters": [parameter["name"] for parameter in parameters if not parameter["required"]],
    }


async def _connected(context: ActionContext, name: str) -> Connection:
    """The server of a name. Raises AgentError when the agent does not use it, or it cannot be reached."""
    used = {server.name: server for server in context.agent.about.mcps()}
    if name not in used:
        agent = context.agent.name
        raise AgentError(f"`{agent}` uses no MCP server `{name}`", help=_known(name, list(used), "It uses"))
    return await context.run.servers.connected(used[name])


def _found(connection: Connection, name: str) -> Tool:
    tools = {tool.name: tool for tool in connection.tools}
    if name not in tools:
        told = f"the MCP server `{connection.name}` has no tool `{name}`"
        raise ActionError(told, help=_known(name, list(tools), "It has"))
    return tools[name]


def _known(name: str, known: list[str], begin: str) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"Did you mean `{near}`?"
    return f"{begin} {', '.join(f'`{one}`' for one in known[:20]) or 'none'}."


def _check(tool: Tool, arguments: dict[str, Any]) -> None:
    """Raise ActionError when a tool cannot take the arguments."""
    try:
        wrong = list(tool.problems(arguments))
    except ValueError as error:
        raise ActionError(f"`{tool.server}.{tool.name}` says what it takes in a broken schema: {error}") from error
    if wrong:
        told = f"`{tool.server}.{tool.name}` cannot be called with this `input`: {'; '.join(wrong)}"
        raise ActionError(told, help=f"Use {tool.signature}.")


# ---------------------------------------------------------------- results


def _data_of(tool: Tool, result: CallToolResult) -> Any:
    """What a tool gave, as data: structured if it is, else its text. Raises ActionError when the tool failed."""
    raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    content = raw.get("content", [])
    texts = [item["text"] for item in content if item["type"] == "text"]
    if result.is_error:
        raise ActionError(f"`{tool.server}.{tool.name}` failed: {_joined(texts) or 'it does not say why'}")
    if result.structured_content is not None:
        return _as_data(json.dumps(result.structured_content))
    if not texts or len(texts) < len(content):
        return _as_data(json.dumps(raw))
    return _value(texts[0]) if len(texts) == 1 else {"result": _joined(texts)}


def _joined(texts: list[str]) -> str:
    return "\n".join(texts)


def _value(text: str) -> Any:
    """A text as data if it is JSON, else as it is."""
    try:
        return _as_data(text)
    except ErrorValue:
        return {"result": text}


def _as_data(text: str) -> Any:
    """JSON text with numbers as everywhere in a program."""
    return parse(text)
