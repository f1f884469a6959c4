"""Trees and diagnostics to copies of them at another place."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from koi_lang.compiler import nodes as n
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import Diagnostic, Edit, Fix, LabeledSpan
from koi_lang.source import Source, Span

Root = TypeVar("Root", bound=n.Node)


def relocate(root: Root, offset: int) -> Root:
    """A copy of a tree so many characters behind its place, or before it. Trees may be of any depth."""
    copies: dict[int, n.Node] = {}
    for node in reversed(list(everything(root))):
        if id(node) not in copies:
            copies[id(node)] = _copy(node, offset, copies)
    return copies[id(root)]  # type: ignore[return-value]


def _copy(node: n.Node, offset: int, copies: dict[int, n.Node]) -> n.Node:
    """A copy of a node whose parts were copied before."""

    def move(value: Any) -> Any:
        if isinstance(value, n.Node):
            return copies[id(value)]
        if type(value) is Span:
            return move_span(value, offset)
        return tuple(map(move, value)) if type(value) is tuple else value

    copy: n.Node = object.__new__(type(node))
    kind: Any = type(node)
    for name in _field_names(kind):
        object.__setattr__(copy, name, move(getattr(node, name)))
    if isinstance(node, n.Text) and node.start is not None:
        object.__setattr__(copy, "start", node.start + offset)
    return copy


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def move_span(span: Span, offset: int) -> Span:
    """A span so many characters behind its place."""
    return Span(span.start + offset, span.end + offset)


def move_problem(problem: Diagnostic, source: Source, offset: int = 0) -> Diagnostic:
    """A problem of a text as one of a source in which this text stands at an offset."""

    def move(place: LabeledSpan) -> LabeledSpan:
        return LabeledSpan(source, move_span(place.span, offset), place.label)

    def mend(fix: Fix) -> Fix:
        edits = (Edit(source, move_span(edit.span, offset), edit.text) for edit in fix.edits)
        return Fix(fix.title, tuple(edits))

    others, fixes = tuple(map(move, problem.others)), tuple(map(mend, problem.fixes))
    return replace(problem, place=move(problem.place), others=others, fixes=fixes)
