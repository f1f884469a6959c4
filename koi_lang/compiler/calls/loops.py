"""Loops to how many rounds they have, where the program says so."""

from __future__ import annotations

from math import ceil

from koi_lang.compiler import nodes as n
from koi_lang.compiler.walk import everything


def rounds_of(loop: n.For | n.ForEach) -> int | None:
    """The most rounds of a loop; None where that is not written down."""
    return _rounds_of_each(loop) if isinstance(loop, n.ForEach) else _rounds_of_count(loop)


def _rounds_of_each(loop: n.ForEach) -> int | None:
    """Over a list that is written there."""
    values = n.strip_parentheses(loop.iterable)
    if not isinstance(values, n.Array) or any(isinstance(item, n.Spread) for item in values.items):
        return None
    return len(values.items)


def _rounds_of_count(loop: n.For) -> int | None:
    """Of `for (let i = 0; i < 3; i++)`, where nothing in it changes `i`."""
    match loop:
        case n.For(
            first=n.Variable(declarators=(n.Declarator(pattern=n.Binding(name=name), value=n.Literal(value=start)),)),
            condition=n.Operation(operands=(n.Name(name=counted), n.Literal(value=end)), operators=(operator,)),
            update=n.Update(operator="++", target=n.Name(name=stepped)),
        ) if name == counted == stepped and operator in ("<", "<=") and _are_numbers(start, end):
            if any(_writes(node, name) for node in everything(loop.body)):
                return None
            assert isinstance(start, (int, float))
            assert isinstance(end, (int, float))
            return max(0, ceil(end - start) if operator == "<" else int(end - start) + 1)
    return None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _writes(node: n.Node, name: str) -> bool:
    """Whether a node changes a variable of a name; one of the same name that is another variable counts, too."""
    match node:
        case n.Update(target=n.Name(name=changed)):
            return changed == name
        case n.Assignment(target=target):
            return any(isinstance(each, (n.Name, n.Binding)) and each.name == name for each in everything(target))
    return False
