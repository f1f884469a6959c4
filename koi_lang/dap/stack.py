"""A stop's logical stack, and the names that each of its levels has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from koi_lang.dap.nodes import ActionNode, Node
from koi_lang.dap.values import variables_of
from koi_lang.runtime.ports import CallPort

# What the stack calls functions that have no name in the program.
NAMES = {"main": "run", "<lambda>": "=>", "<anonymous>": "=>"}


@dataclass(frozen=True, slots=True)
class Level:
    """A call or an action on the stack, as it is at a stop.

    Attributes:
        frame: of a call; None where it is not there any more.
    """

    node: Node
    line: int
    frame: FrameType | None = None

    @property
    def name(self) -> str:
        """Its name on the stack."""
        return NAMES.get(self.node.name, self.node.name)

    def scopes(self) -> dict[str, Mapping[str, Any]]:
        """Its visible values, by the names of groups."""
        if isinstance(self.node, ActionNode) and self.node.call is not None:
            return {"Action": _action(self.node, self.node.call), "Playbook": _playbook(self.node.call)}
        return {} if self.frame is None else {"Variables": variables_of(self.frame)}

    def names(self) -> dict[str, Any]:
        """The names for expressions."""
        return {name: value for group in reversed(self.scopes().values()) for name, value in group.items()}

    def as_data(self, id: int) -> dict[str, Any]:
        """The level as DAP's `StackFrame`."""
        path = self.node.file
        source = {"name": Path(path).name, "path": path}
        return {"id": id, "name": self.name, "line": self.line, "column": 1, "source": source}


def levels_of(node: Node) -> list[Level]:
    """The stack of a place, from the inside out."""
    return [Level(each, each.current_line, each.frame) for each in node.around()]


def _action(node: ActionNode, call: CallPort) -> dict[str, Any]:
    role = call.agent.role
    return {
        "agent": call.agent.name,
        "action": node.intent,
        "fields": node.fields,
        "role": {"name": role.name, "can": list(role.capabilities)},
        "budget": budget_of(call),
        "path": list(node.path),
    }


def budget_of(call: CallPort) -> dict[str, Any]:
    """The spending of a playbook's call with its delegations, and its budget."""
    spent = call.spending
    counts = {"turns": spent.turns, "requests": spent.requests, "tokens": spent.tokens, "usd": spent.usd}
    return {"spent": counts, "limits": spent.budget.limits()}


def _playbook(call: CallPort) -> dict[str, Any]:
    results: Sequence[Any] = [{"action": each.intent, "value": each.value} for each in call.results]
    return {"args": call.args, "state": call.agent.state, "results": results}
