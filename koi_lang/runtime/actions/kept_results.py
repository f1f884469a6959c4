"""Results of actions to their long outputs: kept when a result is had, told by reference, restored from a journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from koi_lang.events import CommandStarted
from koi_lang.runtime.actions.registered import ActionContext
from koi_lang.runtime.outputs import long_texts
from koi_lang.runtime.playbook.repeated_results import REPEATING

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort


async def keep_long_texts(context: ActionContext, result: Any) -> Any:
    """A result, whose long texts are kept from now on, and which the agent of the action knows of."""
    if _has_long_text(result):
        await context.run.outputs.keep(result)
        context.run.outputs.tell(context.agent.name, result)
    return result


async def keep_again(context: ActionContext, action: str, result: Any) -> Any:
    """The same for a result that is come to anew when a run goes on: it is told as it was told before.

    What only says again what the action was given is told with that.
    """
    if context.execution is None or action in REPEATING or not _has_long_text(result):
        return result
    if context.run.outputs.know_as_before(result):
        context.run.outputs.tell(context.agent.name, result)
        return result
    return await keep_long_texts(context, result)


async def restore_long_texts(context: ActionContext, result: Any) -> Any:
    """A result from a journal, with its long texts."""
    if any(True for _ in long_texts.references(result)):
        result = await context.run.outputs.restore(result)
        context.run.outputs.tell(context.agent.name, result)
    return result


def recall_command(context: ActionContext, result: Any) -> None:
    """Register the command in the background that a result from a journal names."""
    number = result.get("command") if isinstance(result, Mapping) else None
    if isinstance(number, int) and context.run.recorded.entries_of(CommandStarted.type):
        context.run.commands.recall(number, tells=context.execution is not None)


def with_references(run: RunPort, value: Any) -> Any:
    """A value as it is told: with references in place of the long texts that are kept."""
    return run.outputs.refer(value) if run.has_outputs else value


def with_marks(run: RunPort, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an action as they are told: with the numbers of outputs in place of their texts."""
    marked: Mapping[str, Any] = run.outputs.mark(dict(fields)) if run.has_outputs else fields
    return marked


def _has_long_text(value: Any) -> bool:
    return any(True for _ in long_texts.long_texts_in(value))
