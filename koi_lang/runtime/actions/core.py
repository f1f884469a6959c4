"""Actions every playbook can use: print, ask, call a model, change the state, return."""

from __future__ import annotations

import json
import re
from typing import Any

from koi_lang.runtime.actions.table import ActionContext, ActionError, action
from koi_lang.runtime.values.inspection import inspect

LIST_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


@action()
async def print(context: ActionContext, message: Any = None, text: Any = None, data: Any = None) -> Any:
    """Show a message to the person. Fields: `message`."""
    shown = next((value for value in (message, text, data) if value is not None), None)
    if shown is None:
        raise ActionError("`print` lacks `message`")
    line = shown if isinstance(shown, str) else inspect(shown)
    context.run.host.print(line)
    context.run.events.emit("printed", context.agent.name, message=line)
    return {"printed": True, "message": line}


@action()
async def prompt_user(context: ActionContext, question: str = "", options: Any = None, prompt: str = "") -> Any:
    """Ask the person one question; gives `answer`. Fields: `question`, `options` (a list to choose from)."""
    asked, choices = question or prompt, [str(option) for option in options or ()]
    if not asked:
        raise ActionError("`prompt_user` lacks `question`")
    if choices:
        asked = "\n".join(line for line in asked.splitlines() if not LIST_LINE.match(line)) or asked
    answer = await context.run.host.ask(asked, choices)
    context.run.events.emit("answered", context.agent.name, question=asked, answer=answer)
    return {"answer": answer}


@action(name="return")
async def return_(context: ActionContext, data: Any = None, result: Any = None) -> Any:
    """End the playbook with a result, once everything is done. Fields: `data`."""
    value = data if data is not None else result if result is not None else {}
    if not isinstance(value, dict):
        return value
    updates = value.get("state_updates", value.get("stateUpdates"))
    if isinstance(updates, dict):
        context.agent.state.update(updates)
        return {key: item for key, item in value.items() if key not in ("state_updates", "stateUpdates")}
    return value


@action()
async def call_llm(context: ActionContext, data: Any, instruction: str) -> Any:
    """Have a model work on data; gives `result`, a text. Fields: `data`, `instruction`."""
    material = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    answer = await context.run.complete(context.agent, instruction, material)
    return {"result": re.sub(r"^```[a-z]*\n?|\n?```$", "", answer.strip())}


@action(needs="execute")
async def update_state(context: ActionContext, updates: Any = None, state: Any = None) -> Any:
    """Change fields of this agent's state. Fields: `updates`, an object."""
    changes = updates if updates is not None else state
    if not isinstance(changes, dict):
        raise ActionError("`update_state` needs `updates`, an object of fields and their new values")
    context.agent.state.update(changes)
    context.run.events.emit("state_changed", context.agent.name, updates=changes)
    return {"state_updated": True, "state": dict(context.agent.state)}
