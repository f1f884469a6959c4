"""Whether a text that was laid out means what it meant: all of it but blanks, its tree, and what comments describe."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.doc_comments import doc_comment
from koi_lang.compiler.nodes import Node
from koi_lang.source import Source

ODD_BLANKS = re.compile(r"[\r\f\ufeff]")


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts differ in blanks only; byte-order marks are blanks of the grammar."""
    return "".join(one.replace("\ufeff", "").split()) == "".join(other.replace("\ufeff", "").split())


def is_same_tree(one: Node, other: Node) -> bool:
    """Whether two trees differ in nothing but spans; without recursion, since programs nest deeply."""
    waiting: list[tuple[Any, Any]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
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


def descriptions(source: Source, program: n.Program) -> list[str]:
    """What the comments above the declarations of a program say of them, those above members of agents included.

    All blanks within a line count the same, as they do for a reader.
    """
    text = ODD_BLANKS.sub(" ", source.text)
    described = [
        part
        for declaration in program.declarations
        for part in (declaration, *(declaration.items if isinstance(declaration, n.Agent | n.Skill) else ()))
        if not isinstance(part, n.Import)
    ]
    return [doc_comment(text, part.span.start) for part in described]
