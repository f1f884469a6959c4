"""Options of MCP servers: what they may hold, and those that the settings of a project describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang.diagnostics import SLIP_IN_FIVE, nearest
from koi_lang.errors import AgentError, SettingsError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.mcp.limits import limits_of
from koi_lang.runtime.mcp.permissions import ServerAccess, rules_of
from koi_lang.runtime.schema import problems
from koi_lang.settings import ProjectSettings, fill_variables
from koi_lang.settings.checks import suggest_key
from koi_lang.settings.project import MCP_OPTIONS, SERVER_RULES, TOML_FILE, mcp_servers, read_toml

# The file that describes a server, and what it says.
Description: TypeAlias = tuple[str, Mapping[str, Any]]
STARTS = frozenset({"command", "url"})
# Options of other programs in `.mcp.json` that are nearly called like ours.
FOREIGN_OPTIONS = frozenset({"auth", "timeout", "timeoutMs"})
TEXT = {"type": "string"}
PROCESS = {
    "type": "object",
    "properties": {
        "type": {"enum": ["stdio"]},
        "command": TEXT,
        "args": {"type": "array", "items": TEXT},
        "env": {"type": "object"},
        "cwd": TEXT,
    },
    "required": ["command"],
}
# A client that is registered by hand; with a `grant` it signs in without a person, at the issuer that it names: with a
# secret or a key of its own, or with a token of somebody whom the issuer trusts, which `identity` can be exchanged for.
CLIENT = {"client_id": TEXT, "client_secret": TEXT}
GRANTED = {**CLIENT, "issuer": TEXT, "scope": TEXT}
CREDENTIALS = {**GRANTED, "grant": {"const": "client_credentials"}, "private_key": TEXT, "algorithm": TEXT}
IDENTITY = {
    "type": "object",
    "properties": {"token": TEXT, "url": TEXT, "client_id": TEXT},
    "required": ["token", "url"],
}
BEARER = {**GRANTED, "grant": {"const": "jwt_bearer"}, "assertion": TEXT, "identity": IDENTITY}


def _client_with(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": ["client_id", *required]}


OAUTH = {
    "anyOf": [
        _client_with({**CLIENT, "grant": {"type": "null"}}),
        _client_with(CREDENTIALS, "grant", "issuer", "client_secret"),
        _client_with(CREDENTIALS, "grant", "issuer", "private_key"),
        _client_with(BEARER, "grant", "issuer", "assertion"),
        _client_with(BEARER, "grant", "issuer", "identity"),
    ]
}
ADDRESS = {
    "type": "object",
    "properties": {
        "type": {"enum": ["http", "streamable-http", "sse"]},
        "url": TEXT,
        "headers": {"type": "object"},
        "oauth": OAUTH,
    },
    "required": ["url"],
}


def options_of(name: str, settings: ProjectSettings, user: str = "") -> Mapping[str, Any]:
    """The options of a server from `koi.toml` or `.mcp.json`, variables filled in.

    Names of programs have no hyphens, so `my_files` also finds `my-files`.

    Args:
        user: the agent or team that uses it, for the message when there is none.

    Raises:
        SettingsError: nothing describes it, its description lacks a variable or cannot be meant, or a file is broken.
    """
    file, about = description_of(name, settings, user)
    if not (settings.is_trusted or about.keys() & STARTS):
        help = "`koi trust` shows what the settings of the folder do, and has them count."
        raise SettingsError(f"the MCP server `{name}` in `{file}` does not count: its folder is not trusted", help=help)
    try:
        options = {key: _fill_variables(value, settings) for key, value in about.items()}
    except SettingsError as error:
        raise SettingsError(f"the MCP server `{name}` in `{file}`: {error.message}", help=error.help) from error
    _require_meant(name, file, options)
    if not options.keys() & STARTS:
        complete_options(name, options)
    return options


def require_tables(settings: ProjectSettings) -> None:
    """Raise SettingsError where a table `[mcp.NAME]` of `koi.toml` has options that cannot be meant."""
    for name, about in read_toml(settings).get("mcp", {}).items():
        _require_meant(name, TOML_FILE, about)


def rules_alone(settings: ProjectSettings) -> Iterator[tuple[str, str]]:
    """The rules of `koi.toml` for servers that neither it nor `.mcp.json` describes: the name of each, and its rule."""
    known = mcp_servers(settings if settings.is_trusted else replace(settings, is_trusted=True))
    for name, (_, about) in known.items():
        yield from ((name, rule) for rule in SERVER_RULES if rule in about and not about.keys() & STARTS)


def _require_meant(name: str, file: str, about: Mapping[str, Any]) -> None:
    """Raise SettingsError for wrong options; without `command` and `url` they are rules for a server, or a part of one.

    Servers of `.mcp.json` are described for other programs as well, which have options of their own.
    """
    for option in about.keys() - MCP_OPTIONS:
        near = nearest(option, MCP_OPTIONS, alike=SLIP_IN_FIVE)
        if near is not None and option not in FOREIGN_OPTIONS:
            why = f"the MCP server `{name}` in `{file}` has no option `{option}`"
            raise SettingsError(why, help=suggest_key(option, MCP_OPTIONS))
    try:
        limits_of(name, about)
        rules_of(name, about)
        if about.keys() & STARTS:
            complete_options(name, about)
    except AgentError as error:
        raise SettingsError(error.message, help=error.help) from error


def complete_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a server that is to be reached, without those that are nothing.

    Args:
        options: `{command, args, env, cwd}`, or `{type, url, headers}`; the type is `http`, for older servers `sse`.

    Raises:
        AgentError: they describe no server.
    """
    given = {key: value for key, value in options.items() if value is not None and value is not undefined}
    if wrong := list(problems(given, PROCESS if is_process(given) else ADDRESS)):
        help = 'Declare `{ command, args }`, or `{ type: "http", url }`.'
        raise AgentError(f"the MCP server `{name}` is not declared completely: {'; '.join(wrong)}", help=help)
    return given


def description_of(name: str, settings: ProjectSettings, user: str = "") -> Description:
    """The description of a server as it stands in `koi.toml` or `.mcp.json`.

    Raises:
        SettingsError: nothing describes it, or a file is broken.
    """
    known = mcp_servers(settings)
    found = _find_description(name, known)
    if found is None:
        used = f", which `{user}` uses" if user else ""
        raise SettingsError(f"there is no MCP server `{name}`{used}", help=_advice(name, list(known), settings.folder))
    return found


def is_process(options: Mapping[str, Any]) -> bool:
    """Whether a server is a process of the run, not something that is reached over HTTP."""
    return "command" in options or "url" not in options


def access_to(server: Mcp, settings: ProjectSettings) -> ServerAccess:
    """The access to a server by the rules of the program and of settings.

    Raises:
        SettingsError: a rule is no list of patterns, nothing describes the server, or a file is broken.
    """
    if server.options is None:
        return ServerAccess(server, rules_of(server.name, options_of(server.name, settings)))
    _, own = _find_description(server.name, mcp_servers(settings)) or ("", {})
    return ServerAccess(server, rules_of(server.name, server.options(), own))


def _find_description(name: str, known: Mapping[str, Description]) -> Description | None:
    return known.get(name) or next((about for key, about in known.items() if _plain(key) == name), None)


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _fill_variables(value: Any, settings: ProjectSettings) -> Any:
    match value:
        case str():
            return fill_variables(value, settings)
        case list():
            return [_fill_variables(item, settings) for item in value]
        case dict():
            return {key: _fill_variables(item, settings) for key, item in value.items()}
    return value


def _advice(name: str, known: list[str], folder: Path) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"Did you mean `{near}`?"
    described = f"; these describe {', '.join(f'`{one}`' for one in known)}" if known else ""
    return (
        f"It is neither declared in the program, as `mcp {_plain(name)} = {{ command: … }}`, nor described in "
        f"`.mcp.json` or `koi.toml` of `{folder}`{described}."
    )
