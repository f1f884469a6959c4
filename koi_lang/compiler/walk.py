"""The parts of a node, for passes that look at every node, and an index of all nodes of a file by their kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar, cast

from koi_lang.compiler import nodes as n
from koi_lang.compiler.nodes import Node

PLAIN = frozenset(("Span", "str", "int", "float", "bool", "None", "tuple"))
Kind = TypeVar("Kind", bound=Node)


@cache
def _part_names(cls: Any) -> tuple[str, ...]:
    """The fields of a class that may hold nodes."""
    return tuple(field.name for field in fields(cls) if not _is_plain(str(field.type)))


def _is_plain(annotation: str) -> bool:
    return annotation.startswith("OneOf[") or PLAIN.issuperset(re.findall(r"\w+", annotation))


def child_nodes(node: Node) -> list[Node]:
    """The nodes directly inside a node, in source order."""
    kind: Any = type(node)
    found: list[Node] = []
    for name in _part_names(kind):
        part = getattr(node, name)
        if isinstance(part, Node):
            found.append(part)
        elif type(part) is tuple:
            found += _nodes_in(part)
    return found


def _nodes_in(items: tuple[object, ...]) -> Iterator[Node]:
    for item in items:
        if isinstance(item, Node):
            yield item
        elif type(item) is tuple:
            yield from _nodes_in(item)


def everything(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, in source order, without recursion."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += reversed(child_nodes(current))


@dataclass(frozen=True, slots=True, eq=False)
class Enclosing:
    """What a piece of a program stands in; None where there is no such thing.

    Attributes:
        root: the handler, function or skill whose names are resolved together.
        function: the innermost handler or function.
        loop: the innermost loop of that function.
        switch: the innermost `switch` of that function, if no loop stands between.
        labels: labelled statements of that function, from the outside.
        test: the test or eval.
    """

    agent: n.Agent | None = None
    skill: n.Skill | None = None
    root: n.Handler | n.Function | n.Skill | n.Test | n.Eval | None = None
    function: n.Handler | n.Function | None = None
    loop: n.Node | None = None
    switch: n.Switch | None = None
    labels: tuple[n.Labelled, ...] = ()
    test: n.Test | n.Eval | None = None


def _in_function(around: Enclosing, function: Any) -> Enclosing:
    return replace(around, root=around.root or function, function=function, loop=None, switch=None, labels=())


def _in_loop(around: Enclosing, loop: Any) -> Enclosing:
    return replace(around, loop=loop, switch=None)


INSIDE: dict[type[Node], Callable[[Enclosing, Any], Enclosing]] = {
    n.Agent: lambda around, agent: Enclosing(agent, around.skill),
    n.Skill: lambda _, skill: Enclosing(None, skill, skill),
    n.Test: lambda _, test: Enclosing(root=test, test=test),
    n.Eval: lambda _, test: Enclosing(root=test, test=test),
    n.Handler: _in_function,
    n.Function: _in_function,
    n.For: _in_loop,
    n.ForEach: _in_loop,
    n.While: _in_loop,
    n.DoWhile: _in_loop,
    n.Switch: lambda around, switch: replace(around, switch=switch),
    n.Labelled: lambda around, labelled: replace(around, labels=(*around.labels, labelled)),
}


class NodeIndex:
    """All nodes of a file by their class, each list in source order, with what they stand in.

    Attributes:
        depth: how many nodes stand within each other at most.
    """

    def __init__(self, program: n.Program) -> None:
        # Nodes and what is around them stand in lists of their own: a pair for every node costs three times as long.
        self._nodes: defaultdict[type[Node], list[Node]] = defaultdict(list)
        self._around: defaultdict[type[Node], list[Enclosing]] = defaultdict(list)
        self._pairs: dict[type[Node], list[tuple[Node, Enclosing]]] = {}
        nodes: list[Node] = [program]
        arounds = [Enclosing()]
        depths = [1]
        self.depth = 1
        while nodes:
            node = nodes.pop()
            around = arounds.pop()
            depth = depths.pop()
            kind = type(node)
            self._nodes[kind].append(node)
            self._around[kind].append(around)
            if kind in INSIDE:
                around = INSIDE[kind](around, node)
            inner = child_nodes(node)
            inner.reverse()
            nodes += inner
            arounds += [around] * len(inner)
            # The operands of an operation may become operations within each other.
            depths += [depth + (len(inner) if kind is n.Operation else 1)] * len(inner)
            if depth > self.depth:
                self.depth = depth

    def of(self, kind: type[Kind]) -> Sequence[tuple[Kind, Enclosing]]:
        """Every node of exactly this class; the pairs are made once, since many rules ask for the same."""
        pairs = self._pairs.get(kind)
        if pairs is None:
            pairs = list(zip(self._nodes.get(kind, ()), self._around.get(kind, ()), strict=True))
            self._pairs[kind] = pairs
        return cast(Sequence[tuple[Kind, Enclosing]], pairs)
