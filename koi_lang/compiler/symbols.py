"""The declarations of a program to tables of names, one set of tables a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import Imported, Unit
from koi_lang.source import Span

Kind = Literal["role", "agent", "team", "skill", "mcp", "prompt", "function", "module", "type"]
FUNCTION = re.compile(r"\bfunction\b(?:\s|\*|//[^\n]*|/\*(?s:.)*?\*/)*", re.IGNORECASE)
IMPORTED: dict[str, Kind] = {"python": "module", "text": "prompt", "skill": "skill"}
SPACES: dict[Kind, str] = {"role": "roles", "skill": "skills", "mcp": "mcps", "type": "types"}


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """Something declared in a file under a name.

    Attributes:
        unit: the file that declares it.
        node: its declaration; for functions the function, for modules and prompt files the import.
        span: where its name stands.
        owner: the skill of an exported function or of an agent declared in a skill.
    """

    kind: Kind
    name: str
    unit: Unit
    node: n.Node
    span: Span
    owner: n.Skill | None = None
    imported: Imported | None = None


@dataclass(slots=True, eq=False)
class SymbolTable:
    """The names one file can use. Types, roles, skills and MCP servers have name spaces of their own.

    Attributes:
        values: agents, teams, prompts, exported functions and Python modules.
        clashes: a name, the symbol that keeps it, and the one that cannot have it.
    """

    types: dict[str, Symbol] = field(default_factory=dict)
    roles: dict[str, Symbol] = field(default_factory=dict)
    skills: dict[str, Symbol] = field(default_factory=dict)
    mcps: dict[str, Symbol] = field(default_factory=dict)
    values: dict[str, Symbol] = field(default_factory=dict)
    clashes: list[tuple[Symbol, Symbol]] = field(default_factory=list)

    def of(self, kind: Kind) -> dict[str, Symbol]:
        """The name space that a kind of declaration lives in."""
        space: dict[str, Symbol] = getattr(self, SPACES.get(kind, "values"))
        return space

    def find(self, kind: Kind, name: str) -> Symbol | None:
        """A declaration by kind and name."""
        symbol = self.of(kind).get(name)
        return symbol if symbol is not None and symbol.kind == kind else None

    def names(self, kind: Kind) -> list[str]:
        """All names of a kind, own ones first."""
        return [symbol.name for symbol in self.of(kind).values() if symbol.kind == kind]

    def add(self, symbol: Symbol) -> None:
        """Enter a symbol; the first one keeps the name. The same declaration met twice is no clash."""
        space = self.of(symbol.kind)
        known = space.setdefault(symbol.name, symbol)
        if known.node is not symbol.node:
            self.clashes.append((known, symbol))


def table_of(unit: Unit) -> SymbolTable:
    """What a file declares itself and what its imports bring, at any distance."""
    table = SymbolTable()
    for symbol in own_symbols(unit):
        table.add(symbol)
    for other in _reachable_units(unit):
        for symbol in own_symbols(other):
            if _visible_outside(symbol):
                table.add(symbol)
    return table


def own_symbols(unit: Unit) -> Iterator[Symbol]:
    """What one file declares, in source order; imported modules and texts first."""
    for imported in unit.imports:
        if imported.kind != "koi" and imported.name is not None:
            kind = IMPORTED[imported.kind]
            statement = imported.statement
            yield Symbol(kind, imported.name, unit, statement, (statement.name or statement.path).span, None, imported)
    for declaration in unit.program.declarations:
        yield from _find_declarations(unit, declaration, None)


def _find_declarations(unit: Unit, node: n.Node, owner: n.Skill | None) -> Iterator[Symbol]:
    match node:
        case n.Role() | n.Agent() | n.Team() | n.Mcp() | n.Prompt():
            kind: Kind = type(node).__name__.lower()  # type: ignore[assignment]
            yield Symbol(kind, node.name.name, unit, node, node.name.span, owner)
        case n.TypeDeclaration():
            yield Symbol("type", node.name.name, unit, node, node.name.span)
        case n.Skill():
            yield Symbol("skill", node.name.name, unit, node, node.name.span)
            for item in node.items:
                yield from _find_declarations(unit, item, node)
        case n.Function(name=str(name), exported=True):
            yield Symbol("function", name, unit, node, _name_span(unit, node.span, name), owner)


def _name_span(unit: Unit, span: Span, name: str) -> Span:
    """Where the name of a function stands: behind the word `function`."""
    match = FUNCTION.search(unit.source.text, span.start, span.end)
    start = span.start if match is None else match.end()
    return Span(start, start + len(name))


def _reachable_units(unit: Unit) -> list[Unit]:
    """All units behind the imports of one, each once, nearest declaration order first."""
    found: dict[str, Unit] = {}
    waiting = list(unit.reached)
    while waiting:
        other = waiting.pop(0)
        if other is not unit and other.path not in found:
            found[other.path] = other
            waiting += other.reached
    return list(found.values())


def _visible_outside(symbol: Symbol) -> bool:
    """Types, roles, agents, teams, skills and their functions, and exported prompts travel through imports."""
    if symbol.kind in ("mcp", "module"):
        return False
    if symbol.kind == "prompt":
        return symbol.imported is not None or (isinstance(symbol.node, n.Prompt) and symbol.node.exported)
    return True
