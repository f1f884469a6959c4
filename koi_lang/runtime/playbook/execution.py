"""Carrying out what a model asks for: one action after the other, groups at the same time, results kept by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import AgentError, KoiError, PermissionDenied
from koi_lang.llm.messages import Result
from koi_lang.runtime.actions.table import ActionContext, find, perform
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.limits import Circles, Failures, LimitReached, Spending
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.references import Names
from koi_lang.runtime.playbook.replies import Action, as_action
from koi_lang.runtime.tasks import gathered
from koi_lang.runtime.values.operators import truth
from koi_lang.runtime.values.undefined import undefined

_current: ContextVar[Execution | None] = ContextVar("koi_execution", default=None)
# Actions that are carried out over and over on purpose.
REPEATABLE = frozenset({"prompt_user", "return"})


def current_execution() -> Execution | None:
    """The playbook call that the current code was started by; None in code that no playbook called."""
    return _current.get()


@dataclass(slots=True)
class Execution:
    """One call of a playbook handler.

    Attributes:
        parent: the call that delegated this one.
        playbook: its text, as rendered last.
        results: what was carried out, in order of completion.
        ended: whether `return` was carried out; `value` is its result.
    """

    agent: Agent
    event: str
    args: Any
    names: Names
    spending: Spending
    circles: Circles
    failures: Failures
    parent: Execution | None = None
    playbook: str = ""
    results: list[Result] = field(default_factory=list)
    ended: bool = False
    value: Any = undefined

    def chain(self) -> list[tuple[str, str]]:
        """Agent and event of this call and of those it was delegated from, innermost first."""
        here = [(self.agent.name, self.event)]
        return here if self.parent is None else here + self.parent.chain()

    # ------------------------------------------------------------ actions

    async def carry_out(self, action: Action) -> str:
        """One action of an answer; gives the feedback for the model, whatever came of it."""
        events, name = self.agent.run.events, self.agent.name
        events.emit("action_started", name, intent=action.intent, id=action.id)
        try:
            value = await self.value_of(action, self.names)
        except LimitReached:
            raise
        except KoiError as error:
            self._note(action, False, error.message)
            self.failures.failed(f"{action.intent}: {error.message}")
            events.emit("action_failed", name, intent=action.intent, error=error.message)
            return prompting.failed(action, error)
        self.failures.succeeded()
        events.emit("action_ended", name, intent=action.intent)
        return prompting.succeeded(action, value)

    async def value_of(self, action: Action, names: Names) -> Any:
        """The result of an action; undefined when its condition does not hold. Raises KoiError."""
        if (
            "condition" in action.data
            and action.intent not in ("if", "while")
            and not names.holds(action.data["condition"])
        ):
            return undefined
        fields = names.filled(action.data)
        if action.intent not in REPEATABLE:
            self.circles.note(action.intent, fields)
        value = await self._dispatch(action, fields, names)
        names.record(action.intent, action.id, value)
        self._note(action, True, value, fields)
        if action.intent == "return" and not action.delegated and not action.group:
            self.ended, self.value = True, value
        return value

    def _note(self, action: Action, ok: bool, value: Any, fields: Mapping[str, Any] | None = None) -> None:
        self.results.append(Result(action.intent, dict(action.data if fields is None else fields), ok, value))

    async def _dispatch(self, action: Action, fields: Mapping[str, Any], names: Names) -> Any:
        """Hand an action to the built-in function or the team member it names."""
        kind = None if action.delegated else find(action.intent)
        if kind is None:
            return await self._delegate(action.intent, fields.get("data", dict(fields)))
        saved, self.names = self.names, names
        try:
            return await perform(kind, ActionContext(self.agent.run, self.agent, self), fields, checked=True)
        finally:
            self.names = saved

    # ------------------------------------------------------------ delegation

    async def _delegate(self, intent: str, payload: Any) -> Any:
        """Have a team member do it, with fresh memory."""
        if not self.agent.role.allows("delegate"):
            role = self.agent.role.name
            raise PermissionDenied(f"`{intent}` needs the permission `delegate`, which the role `{role}` lacks")
        member, event = delegation.resolve(self.agent, intent)
        if (member.about.name, event) in self.chain():
            raise AgentError(f"Infinite loop detected: `{member.about.name}.{event}` is already being carried out")
        token = _current.set(self)
        try:
            return await self.agent.run.call(member, event, payload)
        finally:
            _current.reset(token)

    # ------------------------------------------------------------ control flow

    async def nested(self, actions: Sequence[Any], own: Mapping[str, Any]) -> list[Any]:
        """Carry out the actions of a branch or loop in order, with names of their own; gives their results."""
        names = self.names.nested(**own)
        results: list[Any] = []
        for item in actions:
            if isinstance(item, dict) and "parallel" in item:
                group = [as_action(member) for member in item["parallel"]]
                results += await gathered(self.value_of(action, names) for action in group)
            else:
                results.append(await self.value_of(as_action(item), names))
            if self.ended:
                break
        return [result for result in results if result is not undefined]

    async def holds(self, condition: Any) -> bool:
        """Whether a condition is true; `{llm_eval: true, instruction, data}` asks the model for true or false."""
        if not isinstance(condition, dict):
            return self.names.holds(condition)
        instruction = f"{condition.get('instruction', '')}\nAnswer with exactly one word: true or false."
        material = str(self.names.resolve(condition.get("data", "")))
        answer = await self.agent.run.complete(self.agent, instruction, material, self.spending)
        return bool(truth("true" in answer.lower()))
