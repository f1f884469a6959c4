"""The trail of a replay: every place that was passed, so that one can go back to it in another replay.

What is done at the same time may come in another order the next time. So a place is named by what does not depend on
that: its file and line, its location in the run, and how often it was passed there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from koi_lang.dap.nodes import ActionNode, Node
from koi_lang.dap.steps import Step

MarkKind = Literal["line", "action", "failure", "end"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a run, and which of the times that it is passed.

    Attributes:
        path: its location in the run.
        count: from 1.
    """

    kind: MarkKind
    file: str
    line: int
    path: tuple[str, ...]
    count: int

    def as_data(self) -> list[Any]:
        """The mark for another process."""
        return [self.kind, self.file, self.line, list(self.path), self.count]


def mark_of(data: Sequence[Any]) -> Mark:
    """The mark that another process means."""
    kind, file, line, path, count = data
    return Mark(kind, file, line, tuple(path), count)


@dataclass(slots=True)
class Trail:
    """Everything that was passed, in order.

    Attributes:
        hits: which of it a breakpoint would stop at.
    """

    marks: list[Mark] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    _counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def pass_by(self, kind: MarkKind, node: Node, line: int) -> Mark:
        """Note that a place is passed."""
        key = (kind, node.file, line, node.path)
        self._counts[key] += 1
        mark = Mark(*key, self._counts[key])
        self.marks.append(mark)
        self.nodes.append(node)
        return mark

    def note_hit(self) -> None:
        """Note that a breakpoint would stop at the last place."""
        self.hits.append(len(self.marks) - 1)

    def last_node(self) -> Node | None:
        """The outermost call around the last place; None where nothing was passed."""
        return list(self.nodes[-1].around())[-1] if self.nodes else None

    def before(self, node: Node) -> Mark:
        """The target of a step back: in the same call or playbook, or around it."""
        return self._last(lambda index: Step("over", node).ends_at(self.nodes[index]))

    def last_hit(self) -> Mark:
        """The last place before this one at which a breakpoint stops; the first place where there is none."""
        here = len(self.marks) - 1
        return self.marks[max((index for index in self.hits if index < here), default=0)]

    def beginning_of(self, node: Node) -> Mark:
        """Where a call began; of an action, where it stands in its playbook for the first time."""
        first = next((index for index, each in enumerate(self.nodes) if each is node), 0)
        if isinstance(node, ActionNode):
            around = node.parent
            first = next((i for i, each in enumerate(self.nodes) if each.parent is around), first)
        return self.marks[first]

    def _last(self, fits: Callable[[int], bool]) -> Mark:
        here = len(self.marks) - 1
        return self.marks[next((index for index in range(here - 1, -1, -1) if fits(index)), 0)]
