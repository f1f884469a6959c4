"""A loaded program to what it declares: agents, teams, prompts, servers, and the Python modules it imports."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.team import Team
from koi_lang.runtime.mcp.configured import options_of
from koi_lang.runtime.mcp.remote import Remote
from koi_lang.runtime.prompts import Prompt


def teams_of(module: ModuleType) -> list[Team]:
    """The teams a program declares: in its own file first, then in the files it has loaded."""
    return [value for value in _declared(module) if isinstance(value, Team)]


def agents_of(module: ModuleType) -> list[type[Agent]]:
    """The agents a program declares, in the same order."""
    classes = [value for value in _declared(module) if isinstance(value, type)]
    return [value for value in classes if issubclass(value, Agent) and value is not Agent]


def handler_line(module: ModuleType, name: str) -> str:
    """Where a handler such as `Lead.start` stands, as `file.koi:12`; empty when the program has none of the name."""
    agent, _, event = name.rpartition(".")
    for declared in agents_of(module):
        handler = declared.about.handlers.get(event) if declared.about.name == agent else None
        if handler is not None:
            code = handler.function.__code__
            return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    return ""


def prompts_of(module: ModuleType) -> list[Prompt]:
    """The prompts a program declares, in the same order."""
    return [value for value in _declared(module) if isinstance(value, Prompt)]


def require_servers(module: ModuleType, folder: Path) -> None:
    """See that every MCP server which an agent or a team uses is declared, or described by files of a folder.

    Raises:
        SettingsError: one is neither, or its description lacks something; says where it was looked for.
    """
    used = [(agent.about.name, server) for agent in agents_of(module) for server in agent.about.mcps()]
    for team in teams_of(module):
        agents = [member for member in team.members().values() if isinstance(member, type)]
        used += [(team.name, agent.origin[0]) for agent in agents if issubclass(agent, Remote)]
    for user, server in used:
        if server.options is None:
            options_of(server.name, folder, user)


def python_modules_of(module: ModuleType) -> list[ModuleType]:
    """The Python modules that a program imports, in the same order."""
    return [value for value in _declared(module) if isinstance(value, ModuleType) and not _is_koi(value)]


def _declared(module: ModuleType) -> list[Any]:
    """The values of a module, then those of the Koi files it has loaded, each once."""
    waiting, modules = [module], {}
    while waiting:
        current = waiting.pop(0)
        if id(current) not in modules:
            modules[id(current)] = current
            waiting += [value for value in vars(current).values() if _is_koi(value)]
    values = {id(value): value for each in modules.values() for value in vars(each).values()}
    return list(values.values())


def _is_koi(value: Any) -> bool:
    return isinstance(value, ModuleType) and str(getattr(value, "__file__", "")).endswith(".koi")
