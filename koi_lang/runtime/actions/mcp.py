"""Actions that use the tools, documents and prompts of the MCP servers an agent uses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError, McpServerError
from koi_lang.events import ReadOnlyFound
from koi_lang.js.errors import ErrorValue
from koi_lang.js.json_text import parse_exactly, stringify_exactly
from koi_lang.runtime.actions.registered import ActionContext, action
from koi_lang.runtime.agents.declarations import by_name
from koi_lang.runtime.mcp.caller import Caller
from koi_lang.runtime.mcp.limits import every
from koi_lang.runtime.mcp.safe_text import one_line, plain
from koi_lang.runtime.mcp.tool_catalog import search_tools
from koi_lang.runtime.mcp.tools import Tool
from koi_lang.runtime.model_calls.images import medium
from koi_lang.runtime.playbook.lenient_inputs import read_value
from koi_lang.runtime.playbook.tool_schemas import simplify_schema

if TYPE_CHECKING:
    from mcp.types import CallToolResult, GetPromptResult, ReadResourceResult

    from koi_lang.runtime.mcp.connection import McpConnection
    from koi_lang.runtime.mcp.permissions import ServerAccess


MAX_FOUND = 20
# Of what is asked for because of its details.
MAX_SCHEMA_CHARS = 24_000


@action("call_mcp", aliases={"server": "mcp", "arguments": "input"})
async def call_mcp(context: ActionContext, mcp: str, tool: str, input: dict[str, Any] | None = None) -> Any:
    """Call a tool of an MCP server; `input` is an object with its parameters."""
    access, connection = await _connect(context, mcp)
    known = _tool(context, access, connection, tool)
    arguments = _arguments(context, known, input or {})
    await access.permit(context.agent, tool, arguments=arguments, changes=not known.only_reads)
    if known.only_reads:  # so a run that goes on may ask again
        context.run.events.emit(ReadOnlyFound(mcp, tool), context.agent.name)
    return result_of(known, await connection.call(tool, arguments, _caller(context)))


@action("call_mcp", aliases={"server": "mcp"}, safe=True, shown=MAX_SCHEMA_CHARS, only_looks=True)
async def get_mcp_tool_info(context: ActionContext, mcp: str, tool: str) -> Any:
    """Describe a tool of an MCP server and all its parameters, or find the tools that some words fit."""
    access, connection = await _connect(context, mcp)
    visible = _visible(access, connection)
    if tool in visible:
        return _describe_tool(visible[tool])
    matches = search_tools(list(visible.values()), tool)
    if not matches:
        _tool(context, access, connection, tool)
    return {"mcp": mcp, "found": len(matches), "tools": [match.short_line for match in matches[:MAX_FOUND]]}


@action("call_mcp", aliases={"server": "mcp"}, safe=True, tool="read", only_looks=True)
async def mcp_read_resource(context: ActionContext, mcp: str, uri: str | None = None) -> Any:
    """Read a document of an MCP server by its `uri`; without one, list the documents it has."""
    access, connection = await _connect(context, mcp)
    if uri is not None:
        await access.permit(context.agent, uri, "resource")
        return resource_of(
            await connection.ask(uri, lambda client, meta: client.read_resource(uri, meta=meta), _caller(context))
        )
    _require(connection, "resources")
    plain = await connection.ask("resources/list", lambda client, _: every(_page(client.list_resources), "resources"))
    patterns = await connection.ask(
        "resources/templates/list", lambda client, _: every(_page(client.list_resource_templates), "resource_templates")
    )
    return {
        "resources": pick_fields(
            [one for one in plain if access.shows(str(one.uri), "resource")], "uri", "name", "description", "mimeType"
        ),
        "templates": pick_fields(patterns, "uriTemplate", "name", "description") if access.has("resource") else [],
    }


@action("call_mcp", aliases={"server": "mcp", "name": "prompt", "arguments": "input"}, safe=True, only_looks=True)
async def mcp_get_prompt(
    context: ActionContext, mcp: str, prompt: str | None = None, input: dict[str, Any] | None = None
) -> Any:
    """Get the `text` of a prompt of an MCP server; without a name, list the prompts it has."""
    access, connection = await _connect(context, mcp)
    _require(connection, "prompts")
    known = await connection.ask("prompts/list", lambda client, _: every(_page(client.list_prompts), "prompts"))
    if prompt is None:
        visible = [one for one in known if access.shows(one.name, "prompt")]
        return {"prompts": pick_fields(visible, "name", "description", "arguments")}
    given = {
        name: value if isinstance(value, str) else str(stringify_exactly(value))
        for name, value in (input or {}).items()
    }
    _check_prompt(connection, {one.name: one.arguments or () for one in known}, prompt, given)
    await access.permit(context.agent, prompt, "prompt", given)
    result = await connection.ask(
        prompt, lambda client, meta: client.get_prompt(prompt, given, meta=meta), _caller(context)
    )
    return {"text": prompt_of(result)}


def _page(listing: Any) -> Any:
    """A function of the library that lists, by the mark that a page begins at."""
    return lambda cursor: listing(cursor=cursor)


def _check_prompt(connection: McpConnection, known: dict[str, Any], name: str, given: dict[str, str]) -> None:
    """Raise McpServerError when a server has no such prompt, or it lacks an argument."""
    if name not in known:
        message = f"the MCP server `{connection.name}` has no prompt `{name}`"
        raise McpServerError(message, help=_suggest_name(name, list(known), "It has"))
    missing = [one.name for one in known[name] if one.required and one.name not in given]
    if missing:
        lacks = ", ".join(f"`{one}`" for one in missing)
        raise McpServerError(f"the prompt `{name}` of `{connection.name}` needs {lacks}")


def _caller(context: ActionContext) -> Caller:
    return Caller(context.agent, context.execution.spending if context.execution is not None else None)


async def _connect(context: ActionContext, name: str) -> tuple[ServerAccess, McpConnection]:
    """The connection to a server, with the access of the agent to it.

    Raises:
        AgentError: the agent does not use it, or it cannot be reached.
    """
    used = by_name(context.agent.about.mcps())
    if name not in used:
        agent = context.agent.name
        raise AgentError(f"`{agent}` uses no MCP server `{name}`", help=_suggest_name(name, list(used), "It uses"))
    connection = await context.run.servers.connect(used[name])
    return context.run.servers.access(used[name]), connection


def _require(connection: McpConnection, ability: str) -> None:
    if getattr(connection.abilities, ability) is None:
        raise McpServerError(f"the MCP server `{connection.name}` has no {ability}")


def _visible(access: ServerAccess, connection: McpConnection) -> dict[str, Tool]:
    return {name: tool for name, tool in connection.tools.items() if access.shows(name)}


def _tool(context: ActionContext, access: ServerAccess, connection: McpConnection, name: str) -> Tool:
    """A tool that the agent may use. Raises AgentError."""
    if name not in connection.tools:
        known = list(_visible(access, connection)) or list(connection.tools)
        message = f"the MCP server `{connection.name}` has no tool `{name}`"
        raise McpServerError(message, help=_suggest_name(name, known, "It has"))
    access.require(context.agent, name)
    return connection.tools[name]


def _suggest_name(name: str, known: list[str], begin: str) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"Did you mean `{one_line(near)}`?"
    return f"{begin} {', '.join(f'`{one_line(one)}`' for one in known[:MAX_FOUND]) or 'none'}."


def _arguments(context: ActionContext, tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a tool; those of a model are read leniently by the schema, as for skills.

    Raises:
        McpServerError: the tool cannot be called so.
    """
    if tool.needs_task:
        raise McpServerError(f"`{tool.server}.{tool.name}` can only be called as a task, which is not supported")
    arguments = given
    try:
        wrong = list(tool.problems(given))
        if wrong and context.execution is not None:
            read = read_value(given, simplify_schema(tool.schema) or {}, "input", [])
            with_nulls = {**read, **{name: None for name, value in given.items() if value is None}}
            arguments = read if any(tool.problems(with_nulls)) else with_nulls
            wrong = list(tool.problems(arguments))
        elif wrong and None in given.values():
            # As in JavaScript, code may write null where it means that a field is not there.
            without_nulls = {name: value for name, value in given.items() if value is not None}
            if not any(tool.problems(without_nulls)):
                return without_nulls
    except ValueError as error:
        raise McpServerError(f"`{tool.server}.{tool.name}` says what it takes in a broken schema: {error}") from error
    if wrong:
        message = f"`{tool.server}.{tool.name}` cannot be called with this `input`: {'; '.join(wrong)}"
        raise McpServerError(message, help=tool.hint)
    return arguments


def _describe_tool(tool: Tool) -> dict[str, Any]:
    parameters = tool.parameters()
    return {
        "mcp": tool.server,
        "tool": tool.name,
        "fullName": f"mcp__{tool.server}__{tool.name}",
        "description": tool.description,
        "annotations": dict(tool.annotations),
        "inputSchema": dict(tool.schema),
        "parameters": parameters,
        "requiredParameters": [parameter["name"] for parameter in parameters if parameter["required"]],
        "optionalParameters": [parameter["name"] for parameter in parameters if not parameter["required"]],
    }


MAX_FAILURE_CHARS = 2000
# What JSON may begin with.
JSON = frozenset('{["-0123456789tfn \t\r\n')
PROTOCOL = ("isError", "resultType", "ttlMs", "cacheScope", "_meta")


def result_of(tool: Tool, result: CallToolResult) -> Any:
    """The result of a tool as data: structured if it is, else its text. Raises McpServerError when the tool failed."""
    texts = [item.text for item in result.content if item.type == "text"]
    if result.is_error:
        text = plain("\n".join(texts), MAX_FAILURE_CHARS) or "it does not say why"
        raise McpServerError(f"`{tool.server}.{tool.name}` failed: {text}")
    if result.structured_content is not None:
        only_data = len(texts) == len(result.content)
        return _as_data(json.dumps(result.structured_content)) if only_data else _raw(result)
    if not texts or len(texts) < len(result.content):
        return _raw(result)
    return _value(texts[0]) if len(texts) == 1 else {"result": "\n".join(texts)}


def resource_of(result: ReadResourceResult) -> Any:
    """A document `{ uri, mimeType, text }`, with `blob` instead of `text` if it is none; several as `contents`."""
    contents = _raw(result)["contents"]
    return contents[0] if len(contents) == 1 else {"contents": contents}


def prompt_of(result: GetPromptResult) -> str:
    """A prompt as text, with the speakers named where there are several."""
    roles = {message.role for message in result.messages}
    said = [(message.role, _content_text(_raw(message.content))) for message in result.messages]
    return "\n\n".join(text if len(roles) == 1 else f"{role}: {text}" for role, text in said)


def _content_text(content: Mapping[str, Any]) -> str:
    if content["type"] == "text":
        return str(content["text"])
    if content["type"] == "resource" and "text" in content["resource"]:
        return str(content["resource"]["text"])
    return str(medium(content) or content.get("uri") or content["type"])


def _raw(result: Any) -> Any:
    """A result of the library as JSON, without fields of the protocol itself."""
    data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _as_data(json.dumps({name: value for name, value in data.items() if name not in PROTOCOL}))


def _value(text: str) -> Any:
    """A text as data if it is JSON, else as it is."""
    if text[:1] not in JSON:
        return {"result": text}
    try:
        return _as_data(text)
    except ErrorValue:
        return {"result": text}


def _as_data(text: str) -> Any:
    """JSON text as data, its whole numbers exact: servers count beyond 2^53."""
    return parse_exactly(text)


def pick_fields(items: Sequence[Any], *names: str) -> list[dict[str, Any]]:
    """The listed items of a server, with some of their fields."""
    return [{name: value for name, value in _raw(item).items() if name in names} for item in items]
