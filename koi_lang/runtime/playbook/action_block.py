"""The body of a loop or branch that a model asks for: actions that are carried out as those of its answer are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from koi_lang.js.undefined import undefined
from koi_lang.runtime.actions.registered import ActionError
from koi_lang.runtime.concurrency.tasks import gather
from koi_lang.runtime.playbook.action_parsing import Action
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.prompting import SKIPPED
from koi_lang.runtime.playbook.references import ActionScope

CarryOut = Callable[[PlaybookCall, Action, ActionScope], Coroutine[Any, Any, Any]]


class ActionBlock:
    """Steps, each a group whose members run at the same time.

    Args:
        around: the names of the action that the block is part of.
        carry_out: gives the result of one action.
    """

    def __init__(
        self, call: PlaybookCall, around: ActionScope, steps: Sequence[tuple[Action, ...]], carry_out: CarryOut
    ) -> None:
        self._call, self._steps, self._carry_out = call, steps, carry_out
        self._names = around.child_scope()

    @property
    def has_returned(self) -> bool:
        """Whether the playbook has returned."""
        return self._call.ended

    async def carry_out(self, **own: int) -> list[Any]:
        """Carry the steps out once, with further names; gives the results of what was carried out."""
        self._names.add(own)
        results: list[Any] = []
        for members in self._steps:
            results += await gather(self._carry_out(self._call, action, self._names) for action in members)
            if self.has_returned:
                break
        return [result for result in results if result is not undefined and result is not SKIPPED]

    async def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true; `{llm_eval: true, instruction, data}` asks the model for true or false."""
        if not isinstance(condition, dict):
            return self._names.evaluate_condition(condition)
        agent = self._call.agent
        instruction = f"{condition.get('instruction', '')}\nAnswer with exactly one word: true or false."
        material = str(self._names.resolve(condition.get("data", "")))
        answer = await agent.run.models.complete(agent, instruction, material, self._call.spending, use="judge")
        return _verdict(answer)


def _verdict(answer: str) -> bool:
    """What a model says about a condition. Raises ActionError when it is neither true nor false."""
    word = answer.strip().strip("`\"'.").lower()
    if word not in ("true", "false"):
        raise ActionError(f"the condition was to be answered with true or false, and the answer was {answer[:80]!r}")
    return word == "true"
