"""What a built-in action is, and the table of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError, PermissionDenied

if TYPE_CHECKING:
    from koi_lang.runtime.agents.agent import Agent
    from koi_lang.runtime.engine import Run

ActionFunction = Callable[..., Awaitable[Any]]
NEEDED = inspect.Parameter.empty


class ActionError(KoiError):
    """An action cannot be carried out as asked; the message is for the model."""


@dataclass(frozen=True, slots=True)
class ActionContext:
    """What an action can reach: its agent and the run."""

    run: Run
    agent: Agent


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A built-in action.

    Attributes:
        needs: the permission its agent's role must have; None needs nothing.
        description: first line of its docstring.
        fields: its fields and their defaults; NEEDED where there is none.
    """

    name: str
    needs: str | None
    description: str
    fields: Mapping[str, Any]
    function: ActionFunction


def action(needs: str | None = None, name: str = "") -> Callable[[ActionFunction], ActionFunction]:
    """Enter a function into the table; its parameters after the context are the fields of the action."""

    def enter(function: ActionFunction) -> ActionFunction:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        fields = {parameter.name.rstrip("_"): parameter.default for parameter in parameters}
        description = (inspect.getdoc(function) or "").partition("\n")[0]
        known = name or function.__name__
        _ACTIONS[known] = ActionKind(known, needs, description, fields, function)
        return function

    return enter


_ACTIONS: dict[str, ActionKind] = {}


def find(name: str) -> ActionKind | None:
    """A built-in action by name."""
    return _ACTIONS.get(name)


def allowed(agent: Agent) -> list[ActionKind]:
    """The actions an agent's role permits, in the order of their declaration."""
    return [kind for kind in _ACTIONS.values() if agent.role.allows(kind.needs)]


async def perform(kind: ActionKind, context: ActionContext, fields: Mapping[str, Any], *, checked: bool) -> Any:
    """Carry an action out.

    Args:
        fields: what was asked for; unknown fields are ignored.
        checked: whether the role counts: always for what a model asks, not for code.

    Raises:
        PermissionDenied: the role does not allow the action.
        ActionError: a field is missing, or the action itself says so.
    """
    if checked and not context.agent.role.allows(kind.needs):
        raise PermissionDenied(
            f"`{kind.name}` needs the permission `{kind.needs}`, which the role `{context.agent.role.name}` lacks"
        )
    missing = [name for name, default in kind.fields.items() if default is NEEDED and name not in fields]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ActionError(f"`{kind.name}` lacks {listed}")
    return await kind.function(context, *(fields.get(name, default) for name, default in kind.fields.items()))
