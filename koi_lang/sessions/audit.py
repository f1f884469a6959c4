"""The audit of a program: the permissions and budgets of each agent, without asking a model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram, is_variable
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.walk import Enclosing
from koi_lang.errors import KoiError
from koi_lang.extensions import additions, find_extensions
from koi_lang.program import build, declarations, loader
from koi_lang.program.runs import run_of
from koi_lang.runtime.a2a.member import EVENT, AgentAtHost
from koi_lang.runtime.actions.lookup import actions_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Mcp, Role
from koi_lang.runtime.guards.access_rules import EVERYTHING, WantedAccess, rules_in
from koi_lang.runtime.guards.permissions import Permission, Restrictions, command_patterns
from koi_lang.runtime.guards.policy import Access, any_access
from koi_lang.runtime.guidance.instructions import read_instructions, read_own_instructions
from koi_lang.runtime.guidance.notes import note_folders
from koi_lang.runtime.guidance.skill_folders import find_skills
from koi_lang.runtime.mcp.configured import access_to, require_tables
from koi_lang.runtime.mcp.permissions import allowed_patterns, model_permission
from koi_lang.runtime.mcp.remote import RemoteAgent
from koi_lang.runtime.narrowing import narrowed_to
from koi_lang.runtime.playbook.delegation import reachable
from koi_lang.runtime.run import Run
from koi_lang.sessions.options import RunOptions, require_settings
from koi_lang.settings import project

# What becomes of a command that no pattern covers.
ALLOW = "allow"
ASK = "ask"
DENY = "deny"
# The module that reaches servers for `std/http`.
WEB = "koi_lang.std.http"


def audit(file: str, options: RunOptions) -> list[dict[str, Any]]:
    """For every agent of a program: its role, and its permissions and budgets under some options.

    Raises:
        KoiError: the program has errors, or `koi.toml` is broken.
    """
    module = loader.load(file)
    require_settings(options.settings)
    require_tables(options.settings)
    allow, restrictions = options.allowed_here, options.restrictions_here
    run = run_of(
        module,
        _no_model,
        settings=options.settings,
        limits=options.limits_here,
        allow=allow,
        restrictions=restrictions,
        added=additions(find_extensions(module, use_installed=not options.no_extensions)),
    )
    rules = {"rules": found} if (found := _rules(allow, restrictions)) else {}
    return [{**audited, **rules} for audited in audit_run(run, module, narrowed_calls(build.check(file).files))]


def audit_run(run: Run, module: ModuleType, calls: Sequence[NarrowedCall] = ()) -> list[dict[str, Any]]:
    """The same for the agents that a module leads to, in a run; `calls` are those that its code narrows."""
    hosts = project.allowed_hosts(run.settings)
    agents = [run.agent(agent) for agent in declarations.agents_of(module)]
    return [{**_audit_agent(agent, hosts), "narrowed": list(_audit_calls(agent, agents, calls))} for agent in agents]


def _rules(allow: Sequence[str], restrictions: Restrictions) -> dict[str, list[str]]:
    """The rules for files, commands and pages in their order, and the trust in topics."""
    found = {
        "deny": [rule.text for rule in restrictions.deny],
        "allow": [rule.text for rule in rules_in(allow)],
        "ask": [rule.text for rule in restrictions.ask],
        "trust": [f"{topic} {level}" for topic, level in restrictions.trust.levels],
    }
    return {name: rules for name, rules in found.items() if rules}


def _audit_calls(caller: Agent, agents: Sequence[Agent], calls: Sequence[NarrowedCall]) -> Iterator[dict[str, Any]]:
    """The narrowed calls in the code of an agent, with the permissions in each of the answering agent."""
    for call in (call for call in calls if call.caller == caller.name):
        roles = [role.name for role in call.roles or ()]
        with narrowed_to(*(call.roles or ())):
            may = [_reach(agent) for agent in agents if agent.name in call.agents]
        yield {"event": call.event, "as": roles, "agents": may}


def _reach(agent: Agent) -> dict[str, Any]:
    """The permissions in a narrowed call."""
    audited = _audit_agent(agent, ())
    return {name: audited[name] for name in ("agent", "actions", "delegates", "skills")}


def _no_model(llm: Any) -> Any:
    raise AssertionError("an audit asks no model")


def _audit_agent(agent: Agent, hosts: Sequence[str]) -> dict[str, Any]:
    # A model that is asked for answers alone never acts; handlers in code ask none.
    only_answers = {handler.answers for handler in agent.about.handlers.values() if handler.playbook} == {True}
    may_delegate = agent.role.allows("delegate") and not only_answers
    actions = [] if only_answers else [kind.name for kind in actions_of(agent)]
    policy = agent.run.policy
    has_web = _has_web_skill(agent) and not only_answers and policy.verdict(any_access("web")).outcome != "denied"
    offered = () if only_answers else agent.offered_skills
    return {
        "agent": agent.name,
        "role": agent.role.name,
        "capabilities": list(agent.role.capabilities),
        "actions": actions,
        "answers": [event for event, handler in agent.about.handlers.items() if handler.answers],
        "guards": [f"{guard.event} ({'model' if guard.playbook else 'code'})" for guard in agent.about.guards.values()],
        "state": ["update_state", "return with state_updates"] if "update_state" in actions else [],
        "delegates": list(_delegates(agent)) if may_delegate else [],
        "skills": [f"{skill.name}.{name}" for skill in offered for name in skill.functions],
        "functions": {} if only_answers else _functions(agent, is_permitted=True),
        "refused": {} if only_answers else _functions(agent, is_permitted=False),
        "texts": _texts(agent),
        "mcp": [_with_rules(server, agent) for server in _servers(agent, actions, may_delegate=may_delegate)],
        "commands": {"allowed": [], "others": DENY} if only_answers else _commands(agent),
        "hosts": {"public": has_web, "allowed": list(hosts) if has_web else []},
        "budgets": _budgets(agent),
    }


def _texts(agent: Agent) -> dict[str, list[str]]:
    """The files that its model is told of, where it uses such: instructions, skills that it may read, and notes."""
    about, folder = agent.about, agent.run.settings.folder
    found: dict[str, list[str]] = {}
    if about.instructions:
        files = [*read_own_instructions()[0], *read_instructions(folder, about.file)[0]]
        found["instructions"] = [file.path for file in files]
    if about.reads_skills:
        offered = [entry.place for entry in find_skills(folder) if entry.counts] if about.offers_skills else []
        found["skills"] = [f"{place.name} ({place.origin})" for place in (*about.guides(), *offered)]
    if about.reads_notes:
        found["memory"] = [place.shown for place in note_folders(agent.run.folder) if place.path.is_dir()]
    return found


def _functions(agent: Agent, *, is_permitted: bool) -> dict[str, list[str]]:
    """The functions of skills that the role permits, or those that it does not, by the permission that they need.

    Those that need none stand under the empty name.
    """
    found: dict[str, list[str]] = {}
    for skill in agent.about.skills():
        for name in skill.functions:
            permission = skill.permission(name)
            if agent.role.allows(permission) is is_permitted:
                found.setdefault(permission or "", []).append(f"{skill.name}.{name}")
    return found


def _delegates(agent: Agent) -> Iterator[str]:
    """The members whose events may be delegated; a tool of an MCP server is none where rules deny it."""
    for member in reachable(agent):
        if issubclass(member.agent, AgentAtHost):
            yield f"{member.key}::{EVENT} ({member.agent.origin.text})"
        elif not issubclass(member.agent, RemoteAgent) or _is_shown(*member.agent.origin, agent):
            yield from (f"{member.key}::{event}" for event in member.events)


def _is_shown(server: Mcp, tool: str, agent: Agent) -> bool:
    try:
        return access_to(server, agent.run.settings).shows(tool)
    except KoiError:  # told with the server
        return False


def _servers(agent: Agent, actions: Sequence[str], *, may_delegate: bool) -> Iterator[dict[str, Any]]:
    """The MCP servers whose tools are called, and the tools that are delegated to."""
    if "call_mcp" in actions:
        yield from declarations.servers_of(type(agent), agent.run.settings)
    if may_delegate:
        yield from _members(agent)


def _with_rules(server: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    name, permissions = server["server"], agent.run.permissions
    may_ask_model = permissions.is_allowed(model_permission(name))
    if permissions.restrictions.find_denial(None):
        return {**server, "granted": [], "allowed": [], "may_ask_model": False}
    return {**server, "allowed": allowed_patterns(name, permissions.rules), "may_ask_model": may_ask_model}


def _commands(agent: Agent) -> dict[str, Any]:
    """The patterns of commands that need no question, and what becomes of others; with the reason where rules deny."""
    policy, rules = agent.run.policy, agent.run.permissions.rules
    others = policy.verdict(any_access("run"))
    if not agent.role.allows("execute") or others.outcome == "denied":
        reason = {"reason": others.reason} if agent.role.allows("execute") else {}
        return {"allowed": [], "others": DENY, **reason}
    patterns = [rule.pattern for rule in rules_in(sorted(rules)) if rule.kind == "run" and rule.pattern != EVERYTHING]
    commands = [(pattern, Permission(pattern, "", WantedAccess("run", pattern))) for pattern in patterns]
    allowed = [pattern for pattern, permission in commands if policy.is_open(Access(permission=permission))]
    return {"allowed": [*command_patterns(rules), *allowed], "others": ALLOW if others.is_allowed else ASK}


def _budgets(agent: Agent) -> dict[str, Any]:
    """The budgets of each handler, as declared and in force, and of the whole run."""
    about, ledger = agent.about, agent.run.ledger
    handlers = {
        event: {
            "declared": (declared := about.declared_budget(handler)).limits(),
            "limits": ledger.budget(declared, is_playbook=handler.playbook).limits(),
        }
        for event, handler in about.handlers.items()
    }
    return {"handlers": handlers, "run": ledger.spending.budget.limits()}


def _members(agent: Agent) -> Iterator[dict[str, Any]]:
    """The tools of MCP servers that are members of an agent's teams, with their servers."""
    tools = {
        member.agent.about.name: member.agent for member in reachable(agent) if issubclass(member.agent, RemoteAgent)
    }
    for name, tool in tools.items():
        yield from ({"member": name, **server} for server in declarations.servers_of(tool, agent.run.settings))


def _has_web_skill(agent: Agent) -> bool:
    """Whether a function that is permitted stands in a file that has `std/http`, itself or by files it imports."""
    functions = [function for skill in agent.offered_skills for function in skill.functions.values()]
    files = {str(inspect.unwrap(function).__globals__.get("__file__")) for function in functions}
    modules = [module for path, module in loader.loaded_modules().items() if path in files]
    return any(python.__name__ == WEB for module in modules for python in declarations.python_modules_of(module))


@dataclass(frozen=True, slots=True)
class NarrowedCall:
    """A call that is narrowed to roles.

    Attributes:
        caller: the agent in whose code it stands; empty in a function of a skill.
        agents: the names of those who may answer; empty where only the running program knows.
        roles: None where only the running program knows.
    """

    caller: str
    event: str
    agents: tuple[str, ...]
    roles: tuple[Role, ...] | None


def narrowed_calls(files: Sequence[Analysis]) -> list[NarrowedCall]:
    """Every narrowed call of a program, in the order of its files and their lines."""
    program = AnalysedProgram(tuple(files))
    return [call for file in files for call in (*_sends(file, program), *_handle_calls(file))]


def _sends(file: Analysis, program: AnalysedProgram) -> Iterator[NarrowedCall]:
    known = {send: target for send, _, target in targets(file, program)}
    for send, around in file.index.of(n.Send):
        if send.bounds:
            reached = [agent for agent, _ in known[send].handling(send.event)] if send in known else []
            of_role = [agent for agent in reached if send.role is None or agent.role.name == send.role.name]
            agents = tuple(agent.name.name for agent in (of_role[:1] if send.select == "any" else of_role))
            yield NarrowedCall(_caller(around), send.event, agents, _roles(send.bounds, file))


def _handle_calls(file: Analysis) -> Iterator[NarrowedCall]:
    for call, around in file.index.of(n.Call):
        match call:
            case n.Call(
                callee=n.Member(object=n.Name() as agent, name="handle"), arguments=(event, _, n.Object() as options)
            ):
                role = next((o.value for o in options.properties if isinstance(o, n.Property) and o.key == "as"), None)
                if role is None:
                    continue
                is_known = isinstance(role, n.Name) and not is_variable(role, around, file)
                roles = _roles((role,), file) if is_known and isinstance(role, n.Name) else None
                name = event.value if isinstance(event, n.Text) else ""
                yield NarrowedCall(_caller(around), name, _agents_called(agent, around, file), roles)


def _agents_called(name: n.Name, around: Enclosing, file: Analysis) -> tuple[str, ...]:
    """The agent that a name in code stands for."""
    if name.name == "this":
        return (_caller(around),)
    symbol = None if is_variable(name, around, file) else file.table.find("agent", name.name)
    return () if symbol is None else (symbol.name,)


def _caller(around: Enclosing) -> str:
    return "" if around.agent is None else around.agent.name.name


def _roles(names: Sequence[n.Name], file: Analysis) -> tuple[Role, ...] | None:
    found = [file.table.find("role", name.name) for name in names]
    declared = [symbol.node for symbol in found if symbol is not None and isinstance(symbol.node, n.Role)]
    if len(declared) < len(names):
        return None
    return tuple(Role(role.name.name, tuple(word.name for word in role.capabilities)) for role in declared)
