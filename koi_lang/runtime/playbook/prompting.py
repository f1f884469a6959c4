"""What a model is told: how to answer, what the agent may do, and what came of each action."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koi_lang.runtime.actions.table import allowed
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.playbook.delegation import Reachable, reachable
from koi_lang.runtime.values.json_text import stringify
from koi_lang.runtime.values.undefined import undefined

RULES = """\
You carry out the playbook above by answering with actions. Answer with JSON only, one of these forms:
{"actionType":"direct","intent":"<action>", ...its fields}
{"actionType":"delegate","intent":"<member>::<event>","data":{...}}
{"batch":[action, {"parallel":[action, action]}, action]}
Results come back before your next answer; use the values you are given. Put actions that do not need each other's
results into one batch. When everything is done, `return`. If an action fails, try another way; do not repeat one that
was denied. Ask the person one question at a time."""
MOST_RESULT = 6000


def system_prompt(agent: Agent, playbook: str) -> str:
    """The instructions of one call: the playbook, the rules, and only what this agent may do."""
    sections = [playbook, RULES, "## Actions\n" + "\n".join(_actions(agent))]
    members = reachable(agent) if agent.role.allows("delegate") else []
    if members:
        sections.append("## Agents\n" + "\n".join(line for member in members for line in _member(member)))
    return "\n\n".join(sections)


def _actions(agent: Agent) -> list[str]:
    return [f"- {kind.name}: {kind.description}" for kind in allowed(agent)]


def _member(member: Reachable) -> list[str]:
    about = member.agent.about
    lines = [f"### {member.key}" + (f" - {about.affordance}" if about.affordance else "")]
    for handler in about.handlers.values():
        told = f": {handler.affordance}" if handler.affordance else ""
        expects = f" In: {json.dumps(handler.schema)}" if handler.schema else ""
        lines.append(f"- {member.key}::{handler.event}{told}{expects}")
    return lines


def first_message(args: Any, state: Mapping[str, Any]) -> str:
    """What a call begins with."""
    context = {"args": {} if args is undefined else args, "state": dict(state)}
    return f"Begin with your first action.\nContext: {stringify(context)}"


def succeeded(intent: str, id: str, value: Any) -> str:
    """Feedback on an action that was carried out."""
    shown = "null" if value is undefined else str(stringify(value))
    if len(shown) > MOST_RESULT:
        shown = f"{shown[:MOST_RESULT]}… ({len(shown) - MOST_RESULT} more characters)"
    return f"✅ {_label(intent, id)} -> {shown}"


def failed(intent: str, id: str, message: str) -> str:
    """Feedback on an action that was not."""
    return f"❌ {_label(intent, id)} failed: {message}"


def unreadable(message: str) -> str:
    """Feedback on an answer that could not be read."""
    return f"❌ Your answer could not be read: {message}. Answer with JSON only."


def _label(intent: str, id: str) -> str:
    return f"[{id}] {intent}" if id else intent
