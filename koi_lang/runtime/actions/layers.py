"""Layers around the function of an action: each does one thing and has the next one do the rest."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from koi_lang.runtime.actions import kept_results
from koi_lang.runtime.actions.registered import ActionContext, ActionKind, as_parameters, check
from koi_lang.runtime.guards.permissions import exact_permission
from koi_lang.runtime.guards.policy import action_access
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.mcp.safe_text import clip_text
from koi_lang.runtime.replay.calls import Effect

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
        return await kept_results.keep_again(context, kind.name, await next(running, taken))
    shown = partial(kept_results.with_references, context.run)
    given = kept_results.with_marks(context.run, fields)
    effect = Effect(kind.name, given, context.agent.name, kind.safe, kind.needs == "call_mcp", told=shown)
    do = context.run.recorder.perform if context.execution is not None else context.run.recorder.perform_as_step
    is_recalled = True

    async def work() -> Any:
        nonlocal is_recalled
        is_recalled = False
        return await kept_results.keep_long_texts(context, await next(running, taken))

    outcome = await do(effect, work)
    if is_recalled:
        outcome = await kept_results.restore_long_texts(context, outcome)
        kept_results.recall_command(context, outcome)
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
    """Ask the person about an action of a model, where `[trust]` says so. Raises PermissionDeniedError."""
    context, kind = running.context, running.kind
    if context.execution is not None:
        access, policy = action_access(kind, topic=kind.name), context.run.policy
        if not policy.is_open(access):
            detail = clip_text(json.dumps(dict(fields), ensure_ascii=False, default=str), MAX_DETAIL)
            request = ApprovalRequest(f"use the action `{kind.name}`", detail, context.agent.name)
            permission = exact_permission(f"action={kind.name}")
            await policy.require(replace(access, subject="", request=request, permission=permission))
    return await next(running, fields)


def call_function(running: A, fields: Fields, next: Next[A]) -> Awaitable[Any]:
    """Call the function of the action; nothing follows."""
    return running.kind.function(running.context, **as_parameters(fields))


# What an action goes through whose caller may have it done; the author of code always may.
PERMITTED = (record, hook, ask_person, call_function)
_perform: Next[RunningAction] = compose(PERMITTED)


async def perform(kind: ActionKind, context: ActionContext, fields: Fields) -> Any:
    """Run a permitted action. Raises ActionError, PermissionDeniedError, or as the action does."""
    return await _perform(RunningAction(context, kind), fields)
