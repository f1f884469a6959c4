"""A loaded program to what it declares: agents, teams, prompts, servers, and the Python modules it imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import CompileError, nearest
from koi_lang.errors import KoiError, SettingsError
from koi_lang.grants import EVERYTHING
from koi_lang.js.undefined import undefined
from koi_lang.lazy import lazy_module
from koi_lang.program import loader
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Mcp, Role, Team, by_name
from koi_lang.runtime.mcp.remote import RemoteAgent
from koi_lang.runtime.prompts import Prompt
from koi_lang.runtime.schema import signature_text
from koi_lang.schedules.job import Job
from koi_lang.settings import ProjectSettings
from koi_lang.source import is_program

if TYPE_CHECKING:
    from koi_lang.runtime.mcp import configured
else:
    configured = lazy_module("koi_lang.runtime.mcp.configured")


def teams_of(module: ModuleType) -> list[Team]:
    """The teams a program declares: in its own file first, then in the files it has loaded."""
    return [value for value in _declared_values(module) if isinstance(value, Team)]


def agents_of(module: ModuleType) -> list[type[Agent]]:
    """The agents a program declares, in the same order."""
    classes = [value for value in _declared_values(module) if isinstance(value, type)]
    return [value for value in classes if issubclass(value, Agent) and value is not Agent]


def jobs_of(module: ModuleType) -> list[Job]:
    """The jobs that a file declares, in their order."""
    return module.koi_jobs() if hasattr(module, "koi_jobs") else []


def handler_line(module: ModuleType, name: str) -> str:
    """Where a handler such as `Lead.start` stands, as `file.koi:12`; empty when the program has none of the name."""
    agent, _, event = name.rpartition(".")
    for declared in agents_of(module):
        handler = declared.about.handlers.get(event) if declared.about.name == agent else None
        if handler is not None:
            code = handler.function.__code__
            return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    return ""


def roles_of(module: ModuleType) -> list[Role]:
    """The roles a program declares, in the same order."""
    return [value for value in _declared_values(module) if isinstance(value, Role)]


def prompts_of(module: ModuleType) -> list[Prompt]:
    """The prompts a program declares, in the same order."""
    return [value for value in _declared_values(module) if isinstance(value, Prompt)]


def require_servers(module: ModuleType, settings: ProjectSettings) -> None:
    """See that every MCP server which an agent or a team uses is declared, or described by settings.

    Raises:
        CompileError: one is neither; has the place of its name.
        SettingsError: its description lacks something, or `koi.toml` says of any server what cannot be meant.
    """
    if settings.may_describe_servers:
        configured.require_tables(settings)
    for user, server in _used_servers(module):
        try:
            if server.options is None:
                configured.options_of(server.name, settings, user)
        except SettingsError:
            checked = loader.build.check(str(module.__file__))
            missing = loader.build.missing_servers(checked, lambda name: configured.description_of(name, settings))
            found = [replace(each, severity="error") for each in missing]
            if found:
                raise CompileError(found) from None
            raise


def explain_unused_rules(module: ModuleType, rules: Sequence[str], settings: ProjectSettings) -> Iterator[str]:
    """What to say of rules that name no MCP server of a program, a line each.

    Args:
        rules: such as `mcp:files:write_*`; those of `[mcp.NAME]` are looked at where the program uses any server.
    """
    named = {f"the rule `{rule}` allows nothing": rule.split(":")[1] for rule in rules if rule.startswith("mcp:")}
    alone = list(configured.rules_alone(settings)) if settings.may_describe_servers else []
    used = sorted({server.name for _, server in _used_servers(module)}) if named or alone else []
    if used:
        unused = [(name, rule) for name, rule in alone if re.sub(r"\W", "_", name) not in used]
        named |= {f"`{rule}` of the MCP server `{name}` counts for nothing": name for name, rule in unused}
    for text, name in named.items():
        if name not in used:
            near, listed = nearest(name, used), ", ".join(f"`{other}`" for other in used)
            help = f"did you mean `{near}`?" if near else f"it uses {listed}" if used else "it uses none"
            yield f"{text}, since the program uses no MCP server `{name}`; {help}"


def _used_servers(module: ModuleType) -> list[tuple[str, Mcp]]:
    """The MCP servers of a program, each with the agent or team that uses it."""
    used = [(agent.about.name, server) for agent in agents_of(module) for server in agent.about.mcps()]
    for team in teams_of(module):
        agents = [member for member in team.members().values() if isinstance(member, type)]
        used += [(team.name, agent.origin[0]) for agent in agents if issubclass(agent, RemoteAgent)]
    return used


def servers_of(agent: type[Agent], settings: ProjectSettings) -> list[dict[str, Any]]:
    """The MCP servers an agent may use: name, how it is reached, what is granted, and what rules ask for or deny.

    None is started. What cannot be read of a description is left out: `problem` says why, and `help` what to do. Values
    of `env` and `headers`, which may be secrets, are left out; their names are there.
    """
    return [_server(server, settings) for server in by_name(agent.about.mcps()).values()]


def _server(server: Mcp, settings: ProjectSettings) -> dict[str, Any]:
    granted = list(EVERYTHING if server.granted is None else server.granted)
    about: dict[str, Any] = {"server": server.name, "granted": granted}
    try:
        options = configured.options_of(server.name, settings) if server.options is None else server.options()
        rules = configured.access_to(server, settings).rules
    except KoiError as error:
        return {**about, "problem": error.message, "help": error.help or ""}
    plain = {
        key: options[key] for key in ("command", "args", "cwd", "url") if options.get(key) not in (None, undefined)
    }
    names = {key: list(options[key]) for key in ("env", "headers") if isinstance(options.get(key), dict)}
    transport = "stdio" if configured.is_process(plain) else "sse" if options.get("type") == "sse" else "http"
    return {**about, "transport": transport, **plain, **names, "ask": list(rules.ask), "deny": list(rules.deny)}


def python_modules_of(module: ModuleType) -> list[ModuleType]:
    """The Python modules that a program imports, in the same order."""
    return [value for value in _declared_values(module) if isinstance(value, ModuleType) and not _is_koi(value)]


def _declared_values(module: ModuleType) -> list[Any]:
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
    return isinstance(value, ModuleType) and is_program(str(getattr(value, "__file__", "")))


def agent_fields(agent: type[Agent]) -> dict[str, Any]:
    """The description of an agent for a client."""
    about = agent.about
    teams = [team.name for team in about.teams()]
    fields = {"name": about.name, "affordance": about.affordance, "role": about.role().name, "teams": teams}
    fields["examples"] = list(about.examples)
    return {**fields, "handlers": [_handler_fields(handler) for handler in about.handlers.values()]}


def _handler_fields(handler: Any) -> dict[str, Any]:
    return {
        "name": handler.event,
        "affordance": handler.affordance,
        "playbook": handler.playbook,
        "private": handler.private,
        "takes": signature_text(handler.schema) if handler.schema else "",
        "gives": "" if handler.result is None else handler.result.text,
        "schema": dict(handler.schema),
        "result": None if handler.result is None else dict(handler.result.schema),
    }
