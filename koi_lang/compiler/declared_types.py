"""What the name of a type stands for."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.symbols import SymbolTable


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
