"""All built-in actions: importing this module fills the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from koi_lang.runtime.actions import control, core, mcp, registry, shell
from koi_lang.runtime.actions.table import ActionKind, find, known

if TYPE_CHECKING:
    from koi_lang.runtime.agents.agent import Agent

# The order in which prompts and documentation list them.
MODULES = (core, registry, control, shell, mcp)


def all_actions() -> Sequence[ActionKind]:
    """Every built-in action, module after module, in the order of declaration."""
    order = [module.__name__ for module in MODULES]
    return sorted(known(), key=lambda kind: order.index(kind.function.__module__))


def allowed(agent: Agent) -> list[ActionKind]:
    """The actions an agent's role permits."""
    return [kind for kind in all_actions() if agent.role.allows(kind.needs)]


__all__ = ["MODULES", "all_actions", "allowed", "find"]
