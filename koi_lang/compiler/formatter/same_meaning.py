"""Whether two programs are the same but for the places in their text."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.nodes import Node


def is_same(one: Node, other: Node) -> bool:
    """Whether two trees differ in nothing but spans; without recursion, since programs nest deeply."""
    waiting: list[tuple[Any, Any]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, Node):
            waiting += zip(_parts(left), _parts(right), strict=True)
        elif isinstance(left, tuple):
            if len(left) != len(right):
                return False
            waiting += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def _parts(node: Node) -> list[Any]:
    kind: Any = type(node)
    return [getattr(node, name) for name in _compared_fields(kind)]


@cache
def _compared_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a class of nodes that are no places."""
    return tuple(
        field.name
        for field in fields(kind)
        if "Span" not in str(field.type) and not (kind is n.Text and field.name == "start")
    )
