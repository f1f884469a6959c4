"""Places and parts of what the parser hands to a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.source import Span

Children = Sequence[Any]
# The code of operators that need parentheses.
MIXED_OPERATORS = "E0612"


class BuildError(Exception):
    """A construct has a shape that the grammar cannot rule out; `span` and `message` say which."""

    def __init__(self, span: Span, message: str, help: str | None = None, code: str = "E0102") -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.help = help
        self.code = code


def span_of(item: Any) -> Span:
    """The place of a token or a node."""
    if isinstance(item, Token):
        return Span(item.start_pos or 0, item.end_pos or 0)
    span: Span = item.span
    return span


def cover(children: Children) -> Span:
    """The span from the first to the last child that is there."""
    present = [child for child in children if child is not None and not isinstance(child, (tuple, list))]
    if not present:
        return Span(0, 0)
    return Span(span_of(present[0]).start, span_of(present[-1]).end)


def span_between(first: Any, last: Any) -> Span:
    """The span from the beginning of one token or node to the end of another one."""
    return Span(span_of(first).start, span_of(last).end)


def name_of(token: Token) -> n.Name:
    """A token as a name, spelled as it is."""
    return n.Name(span_of(token), str(token))


def names_of(children: Children) -> tuple[n.Name, ...]:
    """The words among the children; what separates them is left out."""
    return tuple(name_of(child) for child in children if isinstance(child, Token) and child.type in ("NAME", "WORD"))


def only(children: Children, *kinds: type) -> tuple[Any, ...]:
    """The children of some kinds, in their order."""
    return tuple(child for child in children if isinstance(child, kinds))


# What no name may be called.
RESERVED = frozenset(
    "import default export async function var const let if else for in while try catch finally throw instanceof return "
    "await true false null".split()
)
# What begins or belongs to something in its place, and may be a name everywhere else.
CONTEXTUAL = frozenset(
    "skill role can team agent uses llm on state playbook resilience mcp prompt of send timeout use run override "
    "affordance examples amnesia expose private".split()
)
