"""What all nodes are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from koi_lang.source import Span

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make a class of nodes: frozen, with slots, compared by identity."""
    return dataclass(frozen=True, slots=True, eq=False)(cls)


@node
class Node:
    """A piece of the program; `span` covers it from its first to its last character."""

    span: Span


class Expression(Node):
    """Something with a value."""

    __slots__ = ()


class Statement(Node):
    """One step of a handler or function."""

    __slots__ = ()


class Declaration(Node):
    """Something the program declares."""

    __slots__ = ()


class Pattern(Node):
    """The left side of a binding."""

    __slots__ = ()
