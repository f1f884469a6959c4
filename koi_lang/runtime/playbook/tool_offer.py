"""The abilities of an agent as native tools: actions, handlers of members, functions of skills, tools of servers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING, Any

from koi_lang.llm.tool_calls import CallText
from koi_lang.llm.tools import MAX_NAME_CHARS, TOOL_MARK, NativeTool, ToolSet, fit_name, plain_name
from koi_lang.runtime.actions.control import CONTROL
from koi_lang.runtime.actions.registered import ActionKind
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.mcp.safe_text import quote_text
from koi_lang.runtime.playbook import prompting
from koi_lang.runtime.playbook.action_parsing import NAMING, Action, as_action
from koi_lang.runtime.playbook.delegation import Delegate, reachable
from koi_lang.runtime.playbook.prompting import EVERYTHING, Means, Section
from koi_lang.runtime.playbook.tool_schemas import OPEN, simplify_schema
from koi_lang.runtime.schema import of_function

if TYPE_CHECKING:
    from koi_lang.runtime.mcp.tools import Tool
    from koi_lang.runtime.ports import AgentPort

RULES = """\
You are the agent `{name}`.
You carry out playbooks by calling tools. `⟨args.n⟩` stands for `n` of `args`. Calls are done in order while you write.
When everything is done, call `return`."""
PLANS = """\
Call several tools at once where none needs the result of another one; `plan` carries out several actions in one call,
also in parallel, in loops, and with results of earlier ones."""
PLAN = """\
Carry out several actions in one call, in order. An action is {"intent":"<tool>", ...its arguments};
{"parallel":[action, action]} carries out some at once. An action with an "id" can be referred to later in the plan:
"${id.output.field}". Any action may have a "condition", such as "${id.output.n} > 3"."""
CONTROL_FLOW = """\
{"intent":"if","condition":…,"then":[…],"else":[…]}, {"intent":"while","condition":…,"actions":[…],"max_iterations":…}
and {"intent":"repeat","count":…,"actions":[…]} decide and repeat."""
PLAN_SCHEMA = {
    "type": "object",
    "properties": {"actions": {"type": "array", "items": {"type": "object"}}},
    "required": ["actions"],
}
# What OpenAI takes at most (its page on function calling), and others about as much.
MAX_TOOLS = 128
# Of what a server says of a tool, in characters.
MAX_DESCRIPTION_CHARS = 4000
FROM_SERVER = "Its server says of it:"
# What any action in a plan may say of itself.
ABOUT_ANY = ("id", "type", "condition")
# Characters of all that servers say of their tools.
MAX_SERVER_CHARS = 60_000
ASK_FOR_SCHEMA = "`get_mcp_tool_info` gives its parameters."
ANY_OBJECT = {"type": "object"}
ANYTHING: Mapping[str, Any] = {}


DELEGATE = "Have a team member do something; `data` is what its event takes."


@dataclass(frozen=True, slots=True)
class Offer:
    """The abilities of an agent in a call, independent of its payload.

    Attributes:
        sections: the system text for models that call tools.
        of: what MCP servers offered, by which it was made.
        has_outputs: whether there were long outputs to read.
        means: the parts of the protocol that it explains.
    """

    sections: tuple[Section, ...]
    set: ToolSet
    of: Mapping[str, Any]
    has_outputs: bool = False
    means: Means = EVERYTHING


def offer_of(
    agent: AgentPort,
    *,
    is_delegate: bool = False,
    tools: Mapping[str, Any] = prompting.NO_TOOLS,
    result: Mapping[str, Any] = ANYTHING,
    means: Means = EVERYTHING,
    has_outputs: bool = False,
) -> Offer:
    """The abilities of an agent in a call.

    Where that are more tools than providers take, the tools of servers are left to `call_mcp`, then the functions of
    skills to `call_skill`, then the members to one tool. Servers that say too much of their tools are left to it, too.

    Args:
        tools: what MCP servers offer, as `as_data` of `runtime.mcp.tool_catalog` says it.
        result: the schema of what the call is to return.
        means, has_outputs: as in `prompting.offered_actions`.
    """
    permitted = prompting.offered_actions(agent, means, is_delegate=is_delegate, tools=tools, has_outputs=has_outputs)
    kinds = [
        _return_of(kind, result, means) if kind.name == "return" else kind
        for kind in permitted
        if kind.name not in CONTROL
    ]
    control = tuple(kind.name for kind in permitted if kind.name in CONTROL)
    fit = _FitNames()
    plan = NativeTool("plan", f"{PLAN}\n{CONTROL_FLOW}" if control else PLAN, PLAN_SCHEMA)
    plans = means.groups or means.loops
    *own, delegate, plan = fit.each([*map(_tool_of, kinds), _delegate_tool(agent), plan])
    handlers, functions = fit.each(_handlers(agent)), fit.each(_functions(agent))
    is_permitted = [agent.may_call(each.permission(name)) for each in agent.about.skills() for name in each.functions]
    every = {
        "delegate": handlers,
        "call_skill": [*compress(functions, is_permitted)],
        "call_mcp": fit.each(_server_tools(agent, tools)),
    }
    groups = dict(every)
    if not all(tool.description for tool in groups["call_mcp"]) or _size_of(groups["call_mcp"]) > MAX_SERVER_CHARS:
        groups.popitem()
    while groups and len(kinds) + sum(map(len, groups.values())) > MAX_TOOLS:
        groups.popitem()
    apart = {action for action, group in groups.items() if group}
    offered = [tool for group in groups.values() for tool in group]
    offered += [tool for tool in own if tool.name not in apart]
    offered += [*([] if "delegate" in groups else [delegate]), *([plan] if plans else [])]
    unlisted = [] if plans else [plan]
    unlisted += [tool for action, group in every.items() if action not in groups for tool in group]
    unlisted += [tool for tool, permitted in zip(functions, is_permitted, strict=True) if not permitted]
    parts = [RULES.format(name=agent.name), *([PLANS] if plans else []), prompting.DATA]
    rules = Section("rules", "\n".join(parts))
    sections = (rules, *prompting.reach_of(agent, tools, apart), *prompting.plan_of(agent))
    return Offer(
        sections,
        ToolSet(tuple(offered), control, tuple(unlisted), one_by_one=not means.groups),
        tools,
        has_outputs,
        means,
    )


def _return_of(kind: ActionKind, result: Mapping[str, Any], means: Means) -> ActionKind:
    """`return` with the known result schema; plain models return a text if there is none."""
    if not means.is_plain:
        return replace(kind, asked={"data": result})
    return replace(kind, asked={"data": result or {"type": "string"}}, schema={**kind.schema, "required": ["data"]})


def _tool_of(kind: ActionKind) -> NativeTool:
    """An action as a tool; its fields move below `data` if one has a reserved name."""
    opening = '{"actionType":"direct","intent":' + json.dumps(kind.name)
    schema = simplify_schema(kind.asked_schema) or OPEN
    if {*NAMING, "id"}.isdisjoint(kind.schema["properties"]):
        return NativeTool(kind.name, kind.description, schema, opening)
    return NativeTool(kind.name, kind.description, schema, f'{opening},"data":', is_nested=True)


def _handlers(agent: AgentPort) -> list[NativeTool]:
    """The handlers of members, a tool each."""
    members = reachable(agent) if agent.role.allows("delegate") else []
    return [
        _make_nested(
            f"{member.key}{TOOL_MARK}{handler.event}",
            _description(member, handler),
            handler.schema or ANY_OBJECT,
            {"actionType": "delegate", "intent": f"{member.key}::{handler.event}"},
            "data",
        )
        for member in members
        for handler in member.agent.about.handlers.values()
    ]


def _description(member: Delegate, handler: Handler) -> str:
    """The description of a member's handler, or its name if there is none."""
    about = member.agent.about
    text = handler.affordance or about.playbooks.get(handler.event, "") or about.affordance
    gives = "" if handler.result is None else f" It gives {handler.result.text}"
    return (text or f"Have `{member.key}` handle `{handler.event}`.") + gives


def _delegate_tool(agent: AgentPort) -> NativeTool:
    targets = [f"{member.key}::{event}" for member in reachable(agent) for event in member.events]
    fields = {"intent": {"enum": targets}, "data": ANY_OBJECT}
    schema = simplify_schema({"type": "object", "properties": fields, "required": ["intent", "data"]}) or OPEN
    return NativeTool("delegate", DELEGATE, schema, '{"actionType":"delegate"')


def _functions(agent: AgentPort) -> list[NativeTool]:
    """The functions of skills, a tool each; also those that the role does not permit, so that they are refused."""
    return [
        _make_nested(
            f"{skill.name}{TOOL_MARK}{name}",
            function.__doc__ or skill.affordance or f"The function `{name}` of `{skill.name}`.",
            of_function(function),
            {"intent": "call_skill", "skill": skill.name, "function": name},
            "input",
        )
        for skill in agent.about.skills()
        for name, function in skill.functions.items()
    ]


def _server_tools(agent: AgentPort, tools: Mapping[str, Any]) -> list[NativeTool]:
    """The tools of MCP servers, one each; without a description where a server has not told of it in this process."""
    names: Mapping[str, list[str]] = tools.get("names", {})
    catalogs = agent.run.servers.catalog(agent.about.mcps()) if names else ()
    known = {(catalog.server, tool.name): tool for catalog in catalogs for tool in catalog.tools}
    return [
        _server_tool(server, name, known.get((server, name))) for server, offered in names.items() for name in offered
    ]


def _server_tool(server: str, name: str, tool: Tool | None) -> NativeTool:
    said = "" if tool is None else f"{FROM_SERVER} {quote_text(tool.description, MAX_DESCRIPTION_CHARS)}"
    action = {"intent": "call_mcp", "mcp": server, "tool": name}
    return _make_nested(
        f"{server}{TOOL_MARK}{name}", said, ANY_OBJECT if tool is None else tool.schema, action, "input"
    )


def _make_nested(
    name: str, description: str, schema: Mapping[str, Any], action: Mapping[str, str], field: str
) -> NativeTool:
    """A tool whose arguments are one field of an action."""
    opening = json.dumps(action, ensure_ascii=False, separators=(",", ":"))[:-1]
    simple = simplify_schema(schema)
    if simple is None and action["intent"] == "call_mcp":
        description = f"{description} {ASK_FOR_SCHEMA}"
    return NativeTool(name, description, simple or OPEN, f"{opening},{json.dumps(field)}:", is_nested=True)


def _size_of(tools: Sequence[NativeTool]) -> int:
    """Characters of the descriptions of some tools in a request."""
    return sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)


class _FitNames:
    """Makes tool names that providers accept and that are unique, with a digest where one is too long or taken.

    What is not offered has its name all the same, so that a name means the same tool throughout a run.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def each(self, tools: Sequence[NativeTool]) -> list[NativeTool]:
        """The tools with their names."""
        return [replace(tool, name=self._take(tool)) for tool in tools]

    def _take(self, tool: NativeTool) -> str:
        name, salt = fit_name(tool.name), 0
        while len(name) > MAX_NAME_CHARS or name in self._taken:
            digest = blake2b(tool.opening.encode(), digest_size=4, salt=bytes([salt])).hexdigest()
            name, salt = f"{fit_name(tool.name)[: MAX_NAME_CHARS - len(digest) - 1]}_{digest}", salt + 1
        self._taken.add(name)
        return name


def named_action(known: ToolSet, action: Action) -> Action:
    """An action that is called by the name of a tool as the one that the tool stands for.

    Its `id`, `type` and `condition` are arguments, too, where the tool takes such.
    """
    tool = known.by_name.get(action.intent) or known.by_name.get(plain_name(action.intent))
    given = action.data.get("data") if action.delegated else action.data
    if tool is None or not tool.opening or not isinstance(given, Mapping):
        return action
    taken = tool.parameters.get("properties", {})
    fields = {name: value for name, value in given.items() if name in taken or name not in ABOUT_ANY}
    meant = as_action(json.loads(CallText(tool).add(json.dumps(fields))), action.group)
    condition = {name: action.data[name] for name in ("condition",) if name in action.data and name not in taken}
    return replace(meant, id=action.id, data={**meant.data, **condition})
