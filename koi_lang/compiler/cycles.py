"""Strongly connected components: which nodes of a directed graph lie on a cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


def nodes_on_cycles(graph: Mapping[N, Sequence[N]]) -> set[N]:
    """The nodes that lead back to themselves, in time proportional to nodes and edges.

    Args:
        graph: for each node those that it leads to; what is no key leads nowhere.
    """
    search = _Components(graph)
    for node in graph:
        search.visit(node)
    return search.cyclic | {node for node, targets in graph.items() if node in targets}


class _Components(Generic[N]):
    """Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972), without recursion."""

    def __init__(self, graph: Mapping[N, Sequence[N]]) -> None:
        self.cyclic: set[N] = set()
        self._graph = graph
        self._order: dict[N, int] = {}
        self._lowest: dict[N, int] = {}
        self._path: list[N] = []

    def visit(self, root: N) -> None:
        """Find the components of all that a node leads to, unless it was visited."""
        work = [] if root in self._order else [(root, self._enter(root))]
        while work:
            node, targets = work[-1]
            target = next((each for each in targets if each in self._graph and each not in self._order), None)
            if target is None:
                work.pop()
                self._leave(node)
            else:
                work.append((target, self._enter(target)))

    def _enter(self, node: N) -> Iterator[N]:
        self._order[node] = self._lowest[node] = len(self._order)
        self._path.append(node)
        return iter(self._graph[node])

    def _leave(self, node: N) -> None:
        """All behind a node has been visited; where nothing leads further back, its component is complete."""
        lowest = self._lowest
        lowest[node] = min([lowest[node], *(lowest[each] for each in self._graph[node] if each in lowest)])
        if lowest[node] < self._order[node]:
            return
        component: set[N] = set()
        while node not in component:
            component.add(self._path.pop())
        lowest.update(dict.fromkeys(component, len(self._graph)))
        if len(component) > 1:
            self.cyclic.update(component)
