"""Expressions that turn out to be patterns: parameters of arrow functions and targets of assignments."""

from __future__ import annotations

from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.source import Span


class CoverError(Exception):
    """An expression stands where a pattern is needed and cannot be read as one."""

    def __init__(self, span: Span, message: str) -> None:
        super().__init__(message)
        self.span, self.message = span, message


@n.node
class ParameterList(n.Expression):
    """`(a, b: number, ...c)` or `()`: parentheses that can only be parameters of an arrow function."""

    items: tuple[n.Expression | n.Parameter, ...]


def parameters_of(items: n.Expression, pending: dict[Any, Any]) -> tuple[n.Parameter, ...]:
    """The parameters that a pair of parentheses declares. Raises CoverError."""
    if isinstance(items, n.Parenthesized):
        return (_parameter(items.value, pending),)
    if isinstance(items, ParameterList):
        return tuple(_parameter(item, pending) for item in items.items)
    raise AssertionError(f"not parentheses: {items!r}")


def _parameter(item: n.Expression | n.Parameter, pending: dict[Any, Any]) -> n.Parameter:
    if isinstance(item, n.Parameter):
        return item
    if isinstance(item, n.Spread):
        return n.Parameter(item.span, pattern_of(item.value, pending), rest=True)
    if isinstance(item, n.Assignment) and not item.operator:
        return n.Parameter(item.span, _to_declaration(item.target, pending), None, item.value)
    return n.Parameter(item.span, pattern_of(item, pending))


def _to_declaration(target: n.Expression | n.Pattern, pending: dict[Any, Any]) -> n.Pattern:
    """The target of a default value; a pattern that was read as an assignment declares its names after all."""
    if isinstance(target, n.Pattern):
        return _declaring(target)
    return pattern_of(target, pending)


def _declaring(pattern: n.Pattern) -> n.Pattern:
    if isinstance(pattern, (n.ArrayPattern, n.ObjectPattern)):
        elements = tuple(
            n.Element(e.span, _to_declaration(e.pattern, {}), e.key, e.default, e.rest) for e in pattern.elements
        )
        return type(pattern)(pattern.span, elements)
    return pattern


def pattern_of(expression: n.Expression, pending: dict[Any, Any]) -> n.Pattern:
    """Read an expression as a pattern that declares names. Raises CoverError."""
    pending.pop(expression, None)
    if isinstance(expression, n.Hole):
        return expression
    if isinstance(expression, n.Name):
        return n.Binding(expression.span, expression.name)
    result = _composite(expression, pending, declares=True)
    if result is None:
        raise CoverError(expression.span, "a parameter is a name or a pattern of names")
    return result


def target_of(expression: n.Expression, pending: dict[Any, Any]) -> n.Expression | n.Pattern:
    """Read an expression as the left side of `=`; names in it are existing ones. Raises CoverError."""
    pending.pop(expression, None)
    expression = n.strip_parentheses(expression)
    if isinstance(expression, (n.Name, n.Member, n.Index, n.Hole)):
        return expression
    result = _composite(expression, pending, declares=False)
    if result is None:
        raise CoverError(expression.span, "this cannot be assigned to")
    return result


def _composite(expression: n.Expression, pending: dict[Any, Any], *, declares: bool) -> n.Pattern | None:
    if isinstance(expression, n.Array):
        elements = tuple(_element(item, None, None, pending, declares) for item in expression.items)
        return n.ArrayPattern(expression.span, elements)
    if isinstance(expression, n.Object):
        return n.ObjectPattern(
            expression.span, tuple(_entry(item, pending, declares) for item in expression.properties)
        )
    return None


def _entry(item: n.Property | n.Spread, pending: dict[Any, Any], declares: bool) -> n.Element:
    if isinstance(item, n.Spread):
        return _element(item, None, None, pending, declares)
    found = _element(item.value, item.key, item.default, pending, declares)
    return n.Element(item.span, found.pattern, found.key, found.default)


def _element(
    item: n.Expression,
    key: str | n.Expression | None,
    default: n.Expression | None,
    pending: dict[Any, Any],
    declares: bool,
) -> n.Element:
    span, rest = item.span, isinstance(item, n.Spread)
    if isinstance(item, n.Spread):
        item = item.value
    target: n.Expression | n.Pattern
    if isinstance(item, n.Assignment) and not item.operator:
        default = item.value
        target = _to_declaration(item.target, pending) if declares else item.target
    else:
        target = pattern_of(item, pending) if declares else target_of(item, pending)
    return n.Element(span, target, key, default, rest)
