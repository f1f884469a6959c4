"""The logical stack of a program: calls of its functions and actions of its playbooks, across tasks.

A task copies the context it is made in, so a context variable tells which call started what runs in another task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from koi_lang.runtime.ports import CallPort
from koi_lang.runtime.replay.location import Path


@dataclass(slots=True, eq=False)
class Node:
    """A call of a function of the program, or an action of a playbook, that is under way or was.

    Attributes:
        parent: what it was called or asked for by; None for the first call.
        file: absolute path of its `.koi` file.
        line: where it is; of a call, where its frame was when it ended.
        path: its location in the run.
        frame: of a call, as long as it lasts.
        is_over: whether it has ended.
    """

    parent: Node | None
    file: str
    name: str
    line: int
    path: Path
    frame: FrameType | None = None
    is_over: bool = False

    @property
    def current_line(self) -> int:
        """The line it is at, counted from 1."""
        return self.line if self.frame is None else self.frame.f_lineno

    def around(self) -> Iterator[Node]:
        """Itself and the nodes around it, from the inside out."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def is_inside(self, other: Node) -> bool:
        """Whether another one is around it."""
        return any(node is other for node in self.around())


@dataclass(slots=True, eq=False)
class ActionNode(Node):
    """An action of a playbook.

    Attributes:
        intent: its name.
        fields: what it is asked for with; a person may change them.
        call: the call of the playbook.
    """

    intent: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    call: CallPort | None = None


@dataclass(slots=True, eq=False)
class CallNode(Node):
    """A call of a function.

    Attributes:
        code: of the function.
        is_playbook: whether it hands over to a playbook, so that its lines are those of a text.
        failing: whether the last thing that happened in it is an exception.
    """

    code: CodeType | None = None
    is_playbook: bool = False
    failing: bool = False


# The innermost call or action that the current code belongs to.
current_node: ContextVar[Node | None] = ContextVar("koi_debugged", default=None)


def innermost() -> Node | None:
    """The call or action that the current code belongs to, without those that are over."""
    node = current_node.get()
    while node is not None and node.is_over:
        node = node.parent
    return node
