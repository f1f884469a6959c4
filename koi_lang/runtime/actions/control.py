"""Actions that carry out other actions: `if`, `while`, `repeat`, `for_each`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.guards.size import require_room, written_weight
from koi_lang.system.interpolation import IMPLICIT_NAMES

if TYPE_CHECKING:
    from koi_lang.runtime.ports import BlockPort

MAX_ITERATIONS = 1000
# Of an item in a message about it.
MAX_SHOWN_CHARS = 200
# The names of those that models are offered.
CONTROL = ("if", "while", "repeat")
# Frozen plans use it; no model is offered it.
FOR_EACH = "for_each"


@action("execute", name="if", aliases={"else": "otherwise"}, inside=True, only_looks=True)
async def if_(context: ActionContext, condition: Any, then: list[Any], otherwise: list[Any] | None = None) -> Any:
    """Carry out the actions of `then` where the condition holds, else those of `otherwise`."""
    yes, no = _block(context, then, "then"), _block(context, otherwise or [], "else")
    holds = await yes.evaluate_condition(condition)
    results = await (yes if holds else no).carry_out()
    return {"executed": "then" if holds else "else", "result": results[-1] if results else None}


@action("execute", name="while", inside=True, only_looks=True)
async def while_(context: ActionContext, condition: Any, actions: list[Any], max_iterations: int = 100) -> Any:
    """Carry out `actions`, and again while the condition holds; `iteration` counts from 1."""
    _require_count("max_iterations", max_iterations)
    block = _block(context, actions, "actions")
    results = _Results()
    for index in range(max_iterations):
        results.add(await block.carry_out(iteration=index + 1, iterationIndex=index))
        if block.has_returned or not await block.evaluate_condition(condition):
            return {"iterations": index + 1, "results": results.all, "stopped_reason": "condition_false"}
    cut = f"cut off after {max_iterations} iterations; the condition still holds"
    return {"iterations": max_iterations, "results": results.all, "stopped_reason": "max_iterations", "note": cut}


@action("execute", inside=True, only_looks=True)
async def repeat(context: ActionContext, count: int, actions: list[Any]) -> Any:
    """Carry out `actions` `count` times; `iteration` counts from 1."""
    _require_count("count", count)
    block = _block(context, actions, "actions")
    results = _Results()
    iterations = 0
    while iterations < count and not block.has_returned:
        results.add(await block.carry_out(iteration=iterations + 1, iterationIndex=iterations))
        iterations += 1
    return {"iterations": iterations, "results": results.all}


@action(inside=True, only_looks=True, is_occasional=True)
async def for_each(context: ActionContext, of: list[Any], as_: str, actions: list[Any]) -> Any:
    """Carry out `actions` for each item of a list, named by `as`; gives the list of their last results."""
    if len(of) > MAX_ITERATIONS:
        raise ActionError(f"`of` may have {MAX_ITERATIONS} items, and has {len(of)}")
    if not re.fullmatch(r"[A-Za-z_]\w*", as_) or as_ in IMPLICIT_NAMES:
        raise ActionError(f"`as` is to be a name such as `item`, not `{as_}`")
    block = _block(context, actions, "actions")
    size, results = _Results(), list[Any]()
    for index, item in enumerate(of):
        try:
            done = await block.carry_out(**{as_: item}, iteration=index + 1, iterationIndex=index)
        except KoiError as error:
            if not isinstance(error, LimitReachedError):
                shown = json.dumps(item, ensure_ascii=False, default=str)[:MAX_SHOWN_CHARS]
                place = f"This was item {index + 1} of {len(of)}, {shown}; all before it were carried out."
                error.help = f"{error.help} {place}" if error.help else place
            raise
        size.add(done[-1:])
        results.append(done[-1] if done else None)
        if block.has_returned:
            break
    return results


class _Results:
    """The results of the actions of a loop, bounded in size."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._size = 0

    def add(self, more: list[Any]) -> None:
        """Keep further results. Raises AgentError where that is too much."""
        self._size += written_weight(more)
        require_room(self._size)
        self.all += more


def _require_count(name: str, count: int) -> None:
    if not 1 <= count <= MAX_ITERATIONS:
        raise ActionError(f"`{name}` must be between 1 and {MAX_ITERATIONS}, not {count}")


def _block(context: ActionContext, actions: list[Any], where: str) -> BlockPort:
    """The nested actions, all read before the first one is carried out."""
    if context.block is None:
        raise ActionError("control flow is for playbooks; code has its own")
    return context.block(actions, where)
