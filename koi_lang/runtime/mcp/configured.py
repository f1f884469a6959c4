"""Options of the MCP servers that a program uses and does not declare, from the settings of the project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang.diagnostics import nearest
from koi_lang.errors import SettingsError
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.mcp.permissions import ServerAccess, rules_of
from koi_lang.settings import ProjectSettings, fill_variables
from koi_lang.settings.project import mcp_servers

# The file that describes a server, and what it says.
Description: TypeAlias = tuple[str, Mapping[str, Any]]


def options_of(name: str, settings: ProjectSettings, user: str = "") -> Mapping[str, Any]:
    """The options of a server from `koi.toml` or `.mcp.json`, variables filled in.

    Names of programs have no hyphens, so `my_files` also finds `my-files`.

    Args:
        user: the agent or team that uses it, for the message when there is none.

    Raises:
        SettingsError: nothing describes it, its description lacks a variable, or a file is broken.
    """
    file, about = description_of(name, settings, user)
    if not (settings.is_trusted or about.keys() & {"command", "url"}):
        help = "`koi trust` shows what the settings of the folder do, and has them count."
        raise SettingsError(f"the MCP server `{name}` in `{file}` does not count: its folder is not trusted", help=help)
    try:
        return {key: _fill_variables(value, settings) for key, value in about.items()}
    except SettingsError as error:
        raise SettingsError(f"the MCP server `{name}` in `{file}`: {error.message}", help=error.help) from error


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
