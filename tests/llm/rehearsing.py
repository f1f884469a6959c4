"""Plays a playbook with the rehearsal model: actions are answered from a script, nothing is executed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from koi_lang.llm.messages import ActionResult, Adapter, DelegateInfo, Request, Task, TextDelta
from koi_lang.llm.rehearsal import Rehearsal

ACTIONS = (
    *("print", "prompt_user", "return", "update_state", "call_mcp", "shell"),
    *("registry_set", "registry_get", "registry_delete", "registry_keys", "registry_search"),
)
TASK = Task(
    playbook="",
    args={"amount": 5, "name": "Bo", "items": [1, 2], "text": "hey"},
    state={"count": 2, "total": 10, "log": []},
    actions=ACTIONS,
    members=(DelegateInfo("worker", "Works.", ("process",)), DelegateInfo("mathBot", "Computes.", ("add", "sumAll"))),
)


@dataclass
class Play:
    """What a playbook came to: the rounds of actions, the printed lines, the result and what was left out."""

    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    result: Any = None
    notes: tuple[str, ...] = ()

    @property
    def intents(self) -> list[str]:
        """The names of all actions in order."""
        return [action["intent"] for actions in self.rounds for action in actions]


def answer_text(model: Adapter, request: Request) -> str:
    """The whole answer of a model."""

    async def run() -> str:
        return "".join([delta.text async for delta in model(request) if isinstance(delta, TextDelta)])

    return asyncio.run(run())


def next_actions(model: Adapter, task: Task) -> list[dict[str, Any]]:
    """The actions a model proposes now."""
    answer = json.loads(answer_text(model, Request("", (), json=True, task=task)))
    actions: list[dict[str, Any]] = answer.get("batch", [answer])
    return actions


def play(playbook: str, values: Mapping[str, Sequence[Any]] | None = None, **task: Any) -> Play:
    """Run a playbook to its end; `values` are the results by intent, in order."""
    model, now = Rehearsal(), replace(TASK, playbook=playbook, **task)
    left = {intent: list(given) for intent, given in (values or {}).items()}
    ended = Play()
    while "return" not in ended.intents:
        ended.rounds.append(next_actions(model, now))
        for action in ended.rounds[-1]:
            now = _executed(action, now, left, ended)
    return replace(ended, notes=model.notes())


def _executed(action: dict[str, Any], task: Task, left: dict[str, list[Any]], ended: Play) -> Task:
    intent = action["intent"]
    state = {**task.state, **action["updates"]} if intent == "update_state" else task.state
    if intent == "print":
        ended.printed.append(action["message"])
    if intent == "return":
        ended.result = action["data"]
    value = left[intent].pop(0) if intent in left else {"success": True}
    value = {"answer": value} if intent == "prompt_user" else value
    return replace(task, state=state, results=(*task.results, ActionResult(intent, action, True, value)))
