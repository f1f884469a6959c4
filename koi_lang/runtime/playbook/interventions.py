"""The layer in which a person at a debugger decides about an action, before anything of it is permitted or done.

What they decide is an event, so the run can go on, branch and be replayed without them: it is done again then. Fields
that they change are the model's own for what follows: the role has to permit them, and the schema to allow them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from koi_lang.events import ActionOverridden
from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.runtime.actions.layers import Fields, Next
from koi_lang.runtime.intervention import Intervention
from koi_lang.runtime.playbook.prompting import SKIPPED

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.running_action import PlaybookAction
    from koi_lang.runtime.ports import RunPort


def intervene(running: PlaybookAction, fields: Fields, next: Next[PlaybookAction]) -> Awaitable[Any]:
    """Ask a debugger about the action; a decision of an earlier part of the run is repeated."""
    run = running.context.run
    if run.debugger is None and run.recorded.is_live:
        return next(running, fields)
    return _intervene(running, fields, next)


async def _intervene(running: PlaybookAction, fields: Fields, next: Next[PlaybookAction]) -> Any:
    run, intent = running.context.run, running.action.intent
    known = _decided_before(run)
    with _around(running, fields, known) as decided:
        if decided is None:
            return await next(running, fields)
        data = {} if decided.decision == "skip" else as_fields(decided.value)
        run.events.emit(ActionOverridden(intent, decided.decision, **data), running.call.agent.name)
        return await _follow(running, decided, next)


def _around(
    running: PlaybookAction, fields: Fields, known: Intervention | None
) -> AbstractContextManager[Intervention | None]:
    debugger = running.context.run.debugger
    if debugger is None:
        return nullcontext(known)
    return debugger.around_action(running.call, running.action.intent, fields, known)


def _decided_before(run: RunPort) -> Intervention | None:
    """The decision about the current action in an earlier part of the run."""
    known = run.recorded.recall(ActionOverridden.type)
    if known.entry is None or not known.is_whole:
        return None
    decision: Any = known.entry.data["decision"]
    return Intervention(decision, None if decision == "skip" else from_fields(known.entry.data))


async def _follow(running: PlaybookAction, decided: Intervention, next: Next[PlaybookAction]) -> Any:
    """Carry out a decision; a replaced result of the whole playbook is checked like the model's own."""
    if decided.decision == "skip":
        running.is_withheld = True
        return SKIPPED
    if decided.decision == "result" and running.action.intent != "return":
        return decided.value
    fields = decided.value if decided.decision == "fields" else {"data": decided.value}
    running.filled = dict(fields)
    return await next(running, fields)
