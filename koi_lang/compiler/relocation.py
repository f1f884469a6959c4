"""Trees and diagnostics to copies of them at another place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from koi_lang.compiler import nodes as n
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import Diagnostic, Edit, Fix, LabeledSpan
from koi_lang.source import Source, Span

# An offset to the one that takes its place.
Move = Callable[[int], int]
Root = TypeVar("Root", bound=n.Node)


def relocate(root: Root, move: Move) -> Root:
    """A copy of a tree with other places. Trees may be of any depth."""
    copies: dict[int, n.Node] = {}
    for node in reversed(list(everything(root))):
        if id(node) not in copies:
            copies[id(node)] = _copy(node, move, copies)
    return copies[id(root)]  # type: ignore[return-value]


def _copy(node: n.Node, move: Move, copies: dict[int, n.Node]) -> n.Node:
    """A copy of a node whose parts were copied before."""

    def place(value: Any) -> Any:
        if isinstance(value, n.Node):
            return copies[id(value)]
        if type(value) is Span:
            return move_span(value, move)
        return tuple(map(place, value)) if type(value) is tuple else value

    copy: n.Node = object.__new__(type(node))
    kind: Any = type(node)
    for name in _field_names(kind):
        object.__setattr__(copy, name, place(getattr(node, name)))
    if isinstance(node, n.Text) and node.start is not None:
        object.__setattr__(copy, "start", move(node.start))
    return copy


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def move_span(span: Span, move: Move) -> Span:
    """A span with both ends at other offsets."""
    return Span(move(span.start), move(span.end))


def move_problem(problem: Diagnostic, source: Source, move: Move) -> Diagnostic:
    """A problem of a text as one of the source that the text was taken from."""

    def place(labeled: LabeledSpan) -> LabeledSpan:
        return LabeledSpan(source, move_span(labeled.span, move), labeled.label)

    def mend(fix: Fix) -> Fix:
        edits = (Edit(source, move_span(edit.span, move), edit.text) for edit in fix.edits)
        return Fix(fix.title, tuple(edits))

    others, fixes = tuple(map(place, problem.others)), tuple(map(mend, problem.fixes))
    return replace(problem, place=place(problem.place), others=others, fixes=fixes)
