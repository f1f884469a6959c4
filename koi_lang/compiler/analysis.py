"""One file of a program with its tables of names and its resolved code: what checks and code generation work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.scope import AGENT_NAMES, EVAL_NAMES, GLOBALS, RUN_NAMES, TEST_NAMES, Resolution, resolve
from koi_lang.compiler.symbols import SymbolTable, table_of
from koi_lang.compiler.walk import NodeIndex


@dataclass(eq=False)
class Analysis:
    """A file, what its names stand for, and where in it everything is.

    Attributes:
        code: every root of code (handler, function, skill, lone expression) with its resolved names, in order.
        servers: for handlers the MCP servers that their agent uses, which its code may mention.
    """

    unit: Unit
    table: SymbolTable
    code: dict[n.Node, Resolution] = field(default_factory=dict)
    servers: dict[n.Node, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def index(self) -> NodeIndex:
        """All nodes of the file by their class; made when a check first asks."""
        return NodeIndex(self.unit.program)

    @property
    def tests(self) -> tuple[tuple[str, int], ...]:
        """The names of the tests that the file declares, and the lines on which they begin, from 1."""
        declared = [node for node in self.unit.program.declarations if isinstance(node, n.Test)]
        source = self.unit.source
        return tuple((node.name.value, source.position(node.span.start).line) for node in declared)

    @property
    def evals(self) -> tuple[str, ...]:
        """The names of the evals that the file declares."""
        return tuple(node.name.value for node in self.unit.program.declarations if isinstance(node, n.Eval))


def analyse(unit: Unit) -> Analysis:
    """Build the tables of a file and resolve all its code. A role may be named in code: `.role(Worker)`."""
    analysis = Analysis(unit, table_of(unit))
    everywhere = GLOBALS | RUN_NAMES | analysis.table.values.keys() | analysis.table.roles.keys()
    special = {n.Handler: everywhere | AGENT_NAMES, n.Test: everywhere | TEST_NAMES, n.Eval: everywhere | EVAL_NAMES}
    analysis.servers.update(_servers(unit.program.declarations))
    for root in _roots(unit.program.declarations):
        known = special.get(type(root), everywhere)
        servers = analysis.servers.get(root)
        analysis.code[root] = resolve(root, known | servers if servers else known)
    return analysis


def _servers(declarations: tuple[n.Node, ...]) -> Iterator[tuple[n.Node, frozenset[str]]]:
    """The handlers of agents that use servers, with the names of those."""
    for declaration in declarations:
        match declaration:
            case n.Skill():
                yield from _servers(tuple(item for item in declaration.items if isinstance(item, n.Agent)))
            case n.Agent():
                uses = [item for item in declaration.items if isinstance(item, n.Uses) and item.kind == "mcp"]
                names = frozenset(name.name for item in uses for name in item.names)
                handlers = (item for item in declaration.items if isinstance(item, n.Handler) and names)
                yield from ((handler, names) for handler in handlers)


def _roots(declarations: tuple[n.Node, ...]) -> Iterator[n.Node]:
    for declaration in declarations:
        match declaration:
            case n.Agent():
                yield from _agent_roots(declaration)
            case n.Skill():
                yield from _roots(tuple(item for item in declaration.items if isinstance(item, n.Agent)))
                yield declaration
            case n.Mcp():
                yield declaration.options
            case n.Run():
                yield from declaration.arguments
            case n.Test():
                yield declaration
            case n.Eval():
                if isinstance(declaration.source, n.Array):
                    yield declaration.source
                yield declaration


def _agent_roots(agent: n.Agent) -> Iterator[n.Node]:
    for item in agent.items:
        match item:
            case n.Handler() | n.Function():
                yield item
            case n.Llm():
                yield item.options
            case n.State():
                yield from (field.value for field in item.fields if field.value is not None)
            case n.Resilience():
                yield from (value for _, value in item.properties)
