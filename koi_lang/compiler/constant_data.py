"""Expressions that are written out as data, to the data."""

from __future__ import annotations

from typing import Any

from koi_lang.compiler import nodes as n


class NoDataError(ValueError):
    """An expression has a part that is computed; `node` is that part."""

    def __init__(self, node: n.Node) -> None:
        super().__init__("this is computed")
        self.node = node


def constant_data(value: n.Expression) -> Any:
    """The data of JSON that an expression spells out. Raises NoDataError."""
    value = n.strip_parentheses(value)
    match value:
        case n.Literal() | n.Text():
            return value.value
        case n.Prefix(operator="-", operand=n.Literal(value=int() | float() as number)):
            return -number
        case n.Array():
            return [constant_data(item) for item in value.items]
        case n.Object():
            return dict(_entry(property) for property in value.properties)
    raise NoDataError(value)


def _entry(property: n.Node) -> tuple[str, Any]:
    if isinstance(property, n.Property) and isinstance(property.key, str) and not property.accessor:
        return property.key, constant_data(property.value)
    raise NoDataError(property)
