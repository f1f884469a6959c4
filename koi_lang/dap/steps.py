"""Steps: the next place to stop at, by the logical stack, independent of parallel work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from koi_lang.dap.nodes import ActionNode, Node

StepKind = Literal["over", "in", "out"]


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a person has asked for, from a call or an action."""

    kind: StepKind
    origin: Node

    def ends_at(self, node: Node) -> bool:
        """Whether a line of a call, or an action that begins, ends the step."""
        if self.kind == "out":
            around = _caller(self.origin)
            return around is not None and _is_at_or_around(around, node)
        if self.kind == "in" and node.is_inside(self.origin):
            return True
        return _is_at_or_around(self.origin, node) and node.parent is not self.origin


def _is_at_or_around(origin: Node, node: Node) -> bool:
    """Whether a place is a line of a call around the origin, or a further action of a playbook around it."""
    if origin.is_inside(node):
        return True
    return isinstance(node, ActionNode) and node.parent is not None and origin.is_inside(node.parent)


def _caller(origin: Node) -> Node | None:
    """The caller of the call, or of the whole playbook of an action."""
    node: Node | None = origin
    while isinstance(node, ActionNode):
        node = node.parent
    return None if node is None else node.parent
