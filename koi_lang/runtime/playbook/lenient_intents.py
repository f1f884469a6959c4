"""Lenient names of actions: the action that a model means by an intent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koi_lang.runtime.actions.lookup import find_action
from koi_lang.runtime.agents.declarations import by_name
from koi_lang.runtime.guards.permissions import EDITOR_ACTIONS, EDITORS, FAMILIAR
from koi_lang.runtime.playbook.action_parsing import Action
from koi_lang.runtime.playbook.delegation import payload_schema, reachable
from koi_lang.runtime.playbook.lenient_fields import WRAPPERS, as_object
from koi_lang.runtime.playbook.lenient_inputs import read_value
from koi_lang.runtime.playbook.plain_actions import owner_of
from koi_lang.runtime.playbook.prompting import offered_actions
from koi_lang.runtime.schema import of_function, problems

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.call import PlaybookCall
    from koi_lang.runtime.ports import AgentPort


def read_intent(call: PlaybookCall, action: Action) -> tuple[Action, list[str]]:
    """The action behind an intent, with notes where a model wrote it differently."""
    if not action.delegated and find_action(call.agent.run, action.intent) is not None:
        return _unwrap_result(call, action) if action.intent == "return" else (action, [])
    read = None if action.delegated else _of_address(call, action) or _of_habit(call.agent, action)
    if read is not None:
        return read, [f"`{action.intent}` as `{read.intent}`"]
    return _unwrap_payload(call.agent, action)


def _unwrap_result(call: PlaybookCall, action: Action) -> tuple[Action, list[str]]:
    """A result without the object of its own that it stands in, where the playbook says which keys it has."""
    result = action.data.get("data")
    name, value = next(iter(result.items())) if isinstance(result, dict) and len(result) == 1 else ("", None)
    if name not in WRAPPERS:
        return action, []
    shapes, inner = call.result_shapes, as_object(value)
    if inner is None or any(name in keys for keys in shapes) or not any(inner.keys() <= keys for keys in shapes):
        return action, []
    return replace(action, data={**action.data, "data": inner}), [f"`{name}` as `data`"]


def _unwrap_payload(agent: AgentPort, action: Action) -> tuple[Action, list[str]]:
    """The payload of a member, taken out of an extra object where its event declares its fields."""
    schema = payload_schema(agent, action.intent)
    rest = {name: value for name, value in action.data.items() if name != "condition"}
    payload = rest.get("data", rest)
    if not schema.get("properties") or not any(problems(payload, schema)):
        return action, []
    beside = {name: value for name, value in rest.items() if name != "data"}
    if beside and "data" in rest and not any(problems(read_value(beside, schema, "", []), schema)):
        return _instead(action, action.intent, {"data": beside}), ["the fields beside `data` as the payload"]
    inner = as_object(payload)
    inner = None if inner is None else unwrap(inner, schema)
    if inner is None or inner == payload or any(problems(read_value(inner, schema, "", []), schema)):
        return action, []
    what = "a text of JSON" if isinstance(payload, str) else f"`{next(iter(payload))}`"
    return _instead(action, action.intent, {"data": inner}), [f"{what} as the payload"]


def _of_address(call: PlaybookCall, action: Action) -> Action | None:
    """`Skill.function` or `function` as a call of it, `server.tool` of a tool that the server is known to have."""
    agent = call.agent
    if (owner := owner_of(agent, action.intent)) is not None:
        input = unwrap(action.data, of_function(owner.functions[action.intent]))
        read = _instead(action, "call_skill", {"skill": owner.name, "function": action.intent, "input": input})
        return replace(read, function=action.intent)
    name, mark, part = action.intent.partition(".")
    members = {known.lower() for each in reachable(agent) for known in (each.key, each.agent.about.name)}
    if not mark or name.lower() in members:
        return None
    skill = next((known for known in agent.about.skills() if known.name == name), None)
    if skill is not None and part in skill.functions:
        input = unwrap(action.data, of_function(skill.functions[part]))
        return _instead(action, "call_skill", {"skill": name, "function": part, "input": input})
    if name in by_name(agent.about.mcps()) and part in call.tools.get("names", {}).get(name, ()):
        return _instead(action, "call_mcp", {"mcp": name, "tool": part, "input": unwrap(action.data, {})})
    return None


def _of_habit(agent: AgentPort, action: Action) -> Action | None:
    """A tool of other coding agents, or a name in other letters, as the action that does that, if no member does."""
    intent, fields = action.intent.casefold(), dict(action.data)
    if intent in EDITORS:
        known: tuple[str, ...] = (EDITOR_ACTIONS.get(str(fields.pop("command", "")), ""),)
        lines = fields.pop("view_range", None)
        if isinstance(lines, list) and len(lines) == 2 and all(type(line) is int for line in lines):
            fields |= {"offset": lines[0]} | ({"limit": lines[1] - lines[0] + 1} if lines[1] >= lines[0] else {})
    else:
        known = FAMILIAR.get(intent, (intent,))
    name = next((name for name in known if find_action(agent.run, name) is not None), None)
    if name is None or any(action.intent in member.events for member in reachable(agent)):
        return None
    # Their commands come without a description, which is for the person who is asked.
    return replace(action, intent=name, data={"description": "", **fields} if name == "shell" else fields)


def _instead(action: Action, intent: str, fields: dict[str, Any]) -> Action:
    condition = {"condition": action.data["condition"]} if "condition" in action.data else {}
    return replace(action, intent=intent, data={**fields, **condition})


def unwrap(fields: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function, taken out of an extra object that is no parameter of it.

    Args:
        schema: of its parameters; empty where they are not known.
    """
    given = {name: value for name, value in fields.items() if name != "condition"}
    wrappers = [name for name in ("data", *WRAPPERS) if name in given and name not in schema.get("properties", {})]
    inner = as_object(given[wrappers[0]]) if len(wrappers) == 1 else None
    if inner is None or any(name != wrappers[0] and inner.get(name, given) != given[name] for name in given):
        return given
    return inner


def known_names(call: PlaybookCall) -> Iterator[str]:
    """All that the agent of a call is told that it may name as an intent."""
    agent = call.agent
    yield from (kind.name for kind in offered_actions(agent, is_delegate=call.parent is not None, tools=call.tools))
    yield from (f"{skill.name}.{function}" for skill in agent.offered_skills for function in skill.functions)
    if agent.role.allows("delegate"):
        yield from (f"{member.key}::{event}" for member in reachable(agent) for event in member.events)
    if agent.role.allows("call_mcp"):
        yield from (f"{server}.{tool}" for server, tools in call.tools.get("names", {}).items() for tool in tools)
