"""Types that are written down: the types behind their names, and their bounds as JSON Schema."""

from __future__ import annotations

from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.constant_data import NoDataError, constant_data
from koi_lang.compiler.symbols import SymbolTable
from koi_lang.js.bounded_regex import SearchTime
from koi_lang.js.value_bounds import RANGES, expected_words, is_within, range_of


def resolve_type(type: n.Type, table: SymbolTable) -> n.Type:
    """A type in place of the name that is declared for it, and of the promise of it; others as they are."""
    seen: set[str] = set()
    while type.name not in seen:
        seen.add(type.name)
        symbol = table.types.get(type.name)
        if symbol is not None and isinstance(symbol.node, n.TypeDeclaration):
            type = symbol.node.type
        elif type.name == "Promise" and type.arguments:
            type = type.arguments[0]
            seen.discard(type.name)
    return type


def choices_of(type: n.Type, table: SymbolTable) -> list[n.Type]:
    """What a type may be, choices of choices among them; a type that is no union is the only one."""
    return [
        choice
        for choice in _choices(type, table)
        if choice.name not in ("union", "Promise") and choice.name not in table.types
    ]


def choice_names(type: n.Type, table: SymbolTable) -> frozenset[str]:
    """The names of the declared types that a type may be."""
    return frozenset(choice.name for choice in _choices(type, table))


def _choices(type: n.Type, table: SymbolTable) -> list[n.Type]:
    """What a type may be, the names and unions on the way there, too; each name once."""
    waiting = [type]
    found = list[n.Type]()
    seen = set[str]()
    while waiting:
        type = waiting.pop(0)
        symbol = table.types.get(type.name)
        if symbol is not None and isinstance(symbol.node, n.TypeDeclaration):
            if type.name in seen:
                continue
            seen.add(type.name)
            waiting.insert(0, symbol.node.type)
        elif type.name in ("union", "Promise"):
            waiting[:0] = type.arguments
        found.append(type)
    return found


def bounds_of(type: n.Type) -> dict[str, Any]:
    """The keywords for the bounds of a type; empty for types without bounds, and for types that can have none."""
    found: dict[str, Any] = {}
    name = type.name.lower()
    low, high = RANGES.get("integer" if name == "int" else name, ("", "", ""))[:2]
    for bounds in type.bounds if low else ():
        ends = {low: bounds.low, high: bounds.high}
        found |= {name: end for name, end in ends.items() if end is not None}
        if bounds.pattern is not None:
            found["pattern"] = bounds.pattern.pattern
    return found


def broken_bounds(value: n.Expression | None, type: n.Type) -> str:
    """The words for the bounds that a value which is written down does not keep; empty where it does, or may."""
    bounds = bounds_of(type)
    ends = range_of(bounds)
    is_empty = ends.low is not None and ends.high is not None and ends.low > ends.high
    if value is None or not bounds or is_empty:  # bounds that no value keeps are reported where they stand
        return ""
    value = n.strip_parentheses(value)
    items = value.items if isinstance(value, n.Array) else ()
    try:
        # The items of a list are checked on their own; spread ones are not known.
        is_counted = not any(isinstance(item, n.Spread) for item in items)
        data = [None] * len(items) if isinstance(value, n.Array) and is_counted else constant_data(value)
    except NoDataError:
        return ""
    return "" if is_within(data, bounds, SearchTime()) else expected_words(bounds)
