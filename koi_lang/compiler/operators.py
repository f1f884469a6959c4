"""A flat list of operands and operators to a tree, by the ranks of the operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from koi_lang.compiler.nodes import Expression, Operation, Parenthesized
from koi_lang.source import Span

# Higher binds tighter. `**` is the only operator that groups from the right.
RANKS = {
    "??": 1, "||": 1, "&&": 2,
    "|": 3, "^": 4, "&": 5,
    "===": 6, "!==": 6, "==": 6, "!=": 6,
    "<": 7, ">": 7, "<=": 7, ">=": 7, "instanceof": 7, "in": 7,
    "<<": 8, ">>": 8, ">>>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}  # fmt: skip
LAZY = frozenset({"??", "||", "&&"})


def operation(
    operands: Sequence[Expression], operators: Sequence[str], casts: Mapping[int, int] = MappingProxyType({})
) -> Expression:
    """Group n+1 operands and n operators (shunting-yard; linear). Neighbours of one rank share a node.

    Args:
        casts: operands behind which a type stands, by their index, with the offset where it ends. `a + b as T` is
            `(a + b) as T`; the type says nothing, but what it holds together does.
    """
    waiting: list[str] = []
    values: list[Expression] = [operands[0]]
    _close(values, waiting, casts.get(0))
    for index, (operator, operand) in enumerate(zip(operators, operands[1:], strict=True), 1):
        while waiting and _goes_first(waiting[-1], operator):
            _reduce(values, waiting)
        waiting.append(operator)
        values.append(operand)
        _close(values, waiting, casts.get(index))
    while waiting:
        _reduce(values, waiting)
    return values[0]


def _close(values: list[Expression], waiting: list[str], end: int | None) -> None:
    """Hold together what a type is said of, which ends at an offset; nothing where no type stands."""
    if end is None:
        return
    while waiting and RANKS[waiting[-1]] >= RANKS["<"]:
        _reduce(values, waiting)
    values[-1] = Parenthesized(Span(values[-1].span.start, end), values[-1])


def _goes_first(left: str, right: str) -> bool:
    """Whether the operator on the left is applied before the one on its right."""
    if right == "**":
        return RANKS[left] > RANKS[right]
    return RANKS[left] > RANKS[right] or (RANKS[left] == RANKS[right] and not _joins(left, right))


def _joins(left: str, right: str) -> bool:
    """Whether two neighbours of one rank go into one node, so that long chains stay flat."""
    return left == right if left in LAZY else True


def _reduce(values: list[Expression], waiting: list[str]) -> None:
    """Replace the longest run of equal rank at the end of the two stacks by one node."""
    count = 1
    while count < len(waiting) and waiting[-1] != "**" and _same_run(waiting[-count - 1], waiting[-1]):
        count += 1
    operands, operators = tuple(values[-count - 1 :]), tuple(waiting[-count:])
    del values[-count - 1 :], waiting[-count:]
    values.append(Operation(Span(operands[0].span.start, operands[-1].span.end), operands, operators))


def _same_run(left: str, right: str) -> bool:
    return RANKS[left] == RANKS[right] and _joins(left, right)
