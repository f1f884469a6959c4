"""Actions as small models are told of them: all in one list, with flat fields, and answered in the same form."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING

from koi_lang.runtime.actions.lookup import find_action
from koi_lang.runtime.playbook.delegation import payload_schema, reachable
from koi_lang.runtime.schema import action_form, of_function, type_text

if TYPE_CHECKING:
    from koi_lang.runtime.agents.skills import Skill
    from koi_lang.runtime.playbook.action_parsing import Action
    from koi_lang.runtime.ports import AgentPort
    from koi_lang.runtime.schema import Schema

# A small model writes the first action that looks right, so questions stand before what needs their answers.
ORDER = {"prompt_user": 0, "return": 2}
# Fields of any action.
COMMON = frozenset({"intent", "data", "id", "condition"})


def calls_of(agent: AgentPort, outside: Container[str]) -> Iterator[str]:
    """The forms of members' events and of functions of skills, with what each is for.

    Args:
        outside: names of the members that describe themselves.
    """
    for member in reachable(agent) if agent.role.allows("delegate") else ():
        about = member.agent.about
        for handler in about.handlers.values() if about.name not in outside else ():
            purpose = handler.affordance or about.playbooks.get(handler.event, "") or about.affordance
            form = _form_of(f"{member.key}::{handler.event}", handler.schema)
            gives = "" if handler.result is None else f"; gives {type_text(handler.result.schema, described=True)}"
            yield f"{form} {purpose}{gives}".rstrip()
    for skill in agent.offered_skills:
        for name, function in skill.functions.items():
            form = _form_of(name, schema := of_function(function))
            if owner_of(agent, name) is not skill:
                fields = {"skill": {"const": skill.name}, "function": {"const": name}, "input": schema}
                form = action_form("call_skill", {"properties": fields, "required": [*fields]})
            yield f"{form} {function.__doc__ or skill.affordance or ''}".rstrip()


def owner_of(agent: AgentPort, function: str) -> Skill | None:
    """The skill that the bare name of a function means; None where it may mean something else as well."""
    owners = [skill for skill in agent.offered_skills if function in skill.functions]
    is_event = any(function in member.events for member in reachable(agent))
    return owners[0] if len(owners) == 1 and not is_event and find_action(agent.run, function) is None else None


def without_inventions(agent: AgentPort, action: Action) -> str:
    """A member's call as its model should have written it, where that made up a result as well; empty elsewhere."""
    schema = {} if find_action(agent.run, action.intent) else payload_schema(agent, action.intent)
    payload = action.data.get("data", action.data)
    if not _is_flat(schema) or not isinstance(payload, Mapping) or payload.keys() <= {*schema["properties"], *COMMON}:
        return ""
    fields = {key: payload[key] for key in payload if key in schema["properties"]}
    return json.dumps({"intent": action.intent, **fields}, ensure_ascii=False, separators=(",", ":"))


def _form_of(intent: str, schema: Schema) -> str:
    data = {"properties": {"data": schema or {"type": "object"}}, "required": ["data"]}
    return action_form(intent, schema if _is_flat(schema) else data)


def _is_flat(schema: Schema) -> bool:
    """Whether the fields of a payload can stand beside the intent."""
    return bool(schema.get("properties")) and COMMON.isdisjoint(schema["properties"])
