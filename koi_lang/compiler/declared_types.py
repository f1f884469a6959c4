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
