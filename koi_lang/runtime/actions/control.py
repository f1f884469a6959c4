"""Actions that carry out other actions: `if`, `while`, `repeat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koi_lang.runtime.actions.table import ActionContext, ActionError, action

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.execution import Execution

MOST_ITERATIONS = 1000


@action("execute", name="if", aliases={"else": "otherwise"})
async def if_(context: ActionContext, condition: Any, then: list[Any], otherwise: list[Any] | None = None) -> Any:
    """Carry out the actions of `then`, or those of `else`, depending on a condition such as "${a.output.n} > 3"."""
    execution = _execution(context)
    holds = await execution.holds(condition)
    results = await execution.nested(then if holds else otherwise or [], {})
    return {"executed": "then" if holds else "else", "result": results[-1] if results else None}


@action("execute", name="while")
async def while_(context: ActionContext, condition: Any, actions: list[Any], max_iterations: int = 100) -> Any:
    """Carry out `actions`, then again as long as the condition holds; `iteration` counts from 1."""
    execution = _execution(context)
    results: list[Any] = []
    iteration = 0
    while iteration < min(max_iterations, MOST_ITERATIONS) and not execution.ended:
        iteration += 1
        results += await execution.nested(actions, {"iteration": iteration, "iterationIndex": iteration - 1})
        if execution.ended or not await execution.holds(condition):
            return {"iterations": iteration, "results": results, "stopped_reason": "condition_false"}
    return {"iterations": iteration, "results": results, "stopped_reason": "max_iterations"}


@action("execute")
async def repeat(context: ActionContext, count: int, actions: list[Any]) -> Any:
    """Carry out `actions` a number of times; `iteration` counts from 1."""
    if not 1 <= count <= MOST_ITERATIONS:
        raise ActionError(f"`count` must be between 1 and {MOST_ITERATIONS}, not {count}")
    execution = _execution(context)
    results: list[Any] = []
    for index in range(count):
        if execution.ended:
            break
        results += await execution.nested(actions, {"iteration": index + 1, "iterationIndex": index})
    return {"iterations": count, "results": results}


def _execution(context: ActionContext) -> Execution:
    if context.execution is None:
        raise ActionError("control flow is for playbooks; code has its own")
    return context.execution
