"""Layers around the function of an action: each does one thing and has the next one do the rest."""

from __future__ import annotations

import json
import keyword
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from koi_lang.events import CommandStarted
from koi_lang.runtime.actions.registered import ActionContext, ActionKind, check
from koi_lang.runtime.guards.permissions import COMMAND_ACTIONS, exact_permission
from koi_lang.runtime.guards.policy import action_access
from koi_lang.runtime.host import ApprovalRequest, clip_text
from koi_lang.runtime.outputs import long_texts
from koi_lang.runtime.playbook.repeated_results import REPEATING
from koi_lang.runtime.replay.calls import Effect

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# Of what an action is given, for the person, in characters.
MAX_DETAIL = 500


@dataclass(slots=True)
class RunningAction:
    """An action that is being carried out."""

    context: ActionContext
    kind: ActionKind


A = TypeVar("A", bound=RunningAction)
Fields = Mapping[str, Any]
Next = Callable[[A, Fields], Awaitable[Any]]
# A layer that has nothing to do after the next one is a plain function, which costs less than one that waits.
ActionLayer = Callable[[A, Fields, Next[A]], Awaitable[Any]]


def compose(layers: Sequence[ActionLayer[A]]) -> Next[A]:
    """Compose layers into one function from the fields of an action to its result; raises as the layers do.

    Args:
        layers: from the outside in; the last one calls no other.
    """
    next: Next[A] = _end
    for layer in reversed(layers):
        next = _bind(layer, next)
    return next


def _bind(layer: ActionLayer[A], next: Next[A]) -> Next[A]:
    return lambda running, fields: layer(running, fields, next)


def _end(running: RunningAction, fields: Fields) -> Awaitable[Any]:
    raise AssertionError(f"the last layer of `{running.kind.name}` has called another one")


def permit(running: A, fields: Fields, next: Next[A]) -> Awaitable[Any]:
    """Refuse actions that the policy of the run denies. Raises PermissionDeniedError."""
    kind, context = running.kind, running.context
    context.run.policy.check(action_access(kind, role=context.agent.role, topic=kind.name))
    return next(running, fields)


async def record(running: A, fields: Fields, next: Next[A]) -> Any:
    """Check the fields of the action and run it once; an outcome of an earlier part of the run is reused.

    Raises:
        ActionError: a field is missing or wrong.
    """
    kind, context = running.kind, running.context
    taken = check(kind, fields)
    if kind.inside:
        return await keep_again(context, kind.name, await next(running, taken))
    shown = partial(with_references, context.run)
    given = with_marks(context.run, fields)
    effect = Effect(kind.name, given, context.agent.name, kind.safe, kind.needs == "call_mcp", told=shown)
    do = context.run.recorder.perform if context.execution is not None else context.run.recorder.perform_as_step
    is_recalled = True

    async def work() -> Any:
        nonlocal is_recalled
        is_recalled = False
        return await keep_long_texts(context, await next(running, taken))

    outcome = await do(effect, work)
    if is_recalled:
        outcome = await restore_long_texts(context, outcome)
        recall_command(context, outcome)
    if is_recalled and kind.renew is not None:
        await kind.renew(context, **taken)
    return outcome


def hook(running: A, fields: Fields, next: Next[A]) -> Awaitable[Any]:
    """Ask the hooks of the run about the action and its result; rewritten fields are checked again."""
    context, kind = running.context, running.kind
    hooks = context.run.hooks
    if hooks is None or not hooks.around_actions:
        return next(running, fields)
    call = hooks.action(context.agent, kind.name, fields, by_model=context.execution is not None)
    return hooks.around(call, partial(check, kind), partial(next, running))


async def ask_person(running: A, fields: Fields, next: Next[A]) -> Any:
    """Ask the person about an action of a model, where `[trust]` says so. Raises PermissionDeniedError.

    A command is asked about when it is known what would be run.
    """
    context, kind = running.context, running.kind
    if context.execution is not None and kind.name not in COMMAND_ACTIONS:
        access, policy = action_access(kind, topic=kind.name), context.run.policy
        if policy.verdict(access).outcome != "allowed":
            detail = clip_text(json.dumps(dict(fields), ensure_ascii=False, default=str), MAX_DETAIL)
            request = ApprovalRequest(f"use the action `{kind.name}`", detail, context.agent.name)
            permission = exact_permission(f"action={kind.name}")
            await policy.require(replace(access, subject="", request=request, permission=permission))
    return await next(running, fields)


def call_function(running: A, fields: Fields, next: Next[A]) -> Awaitable[Any]:
    """Call the function of the action; nothing follows."""
    parameters = {f"{name}_" if keyword.iskeyword(name) else name: value for name, value in fields.items()}
    return running.kind.function(running.context, **parameters)


# What an action goes through whose caller may have it done; the author of code always may.
PERMITTED = (record, hook, ask_person, call_function)
_perform: Next[RunningAction] = compose(PERMITTED)


async def perform(kind: ActionKind, context: ActionContext, fields: Fields) -> Any:
    """Run a permitted action. Raises ActionError, PermissionDeniedError, or as the action does."""
    return await _perform(RunningAction(context, kind), fields)


# ---------------------------------------------------------------- long texts in fields and results


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
