"""The text of a Koi file to the names that it declares, by the compiler's parser, also where parts of it are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.parser import parse
from koi_lang.source import Source, Span

KINDS: dict[type[n.Node], str] = {
    n.Agent: "agent",
    n.Skill: "skill",
    n.Role: "role",
    n.Team: "team",
    n.Mcp: "mcp",
    n.Prompt: "prompt",
    n.TypeDeclaration: "type",
    n.Test: "test",
    n.Eval: "eval",
}


class DeclaredName(NamedTuple):
    """A name and what it stands for.

    Attributes:
        inside: the agent or skill that it belongs to; empty for declarations of the file.
        lines: the first and the last line of the declaration.
    """

    name: str
    kind: str
    inside: str
    lines: tuple[int, int]


def declared_names(path: str, text: str) -> list[DeclaredName]:
    """The declarations of a file in order, with handlers, functions and state of agents and skills.

    The parser is one for all threads: only the one that runs programs may call this.
    """
    source = Source(path, text)
    program, _ = parse(source)
    return [
        DeclaredName(name, kind, inside, _lines(source, span))
        for name, kind, inside, span in _names_in(program.declarations, "")
    ]


def _names_in(declarations: tuple[n.Node, ...], inside: str) -> Iterator[tuple[str, str, str, Span]]:
    for node in declarations:
        name, kind = _name_and_kind(node)
        if name:
            yield name, kind, inside, node.span
        if isinstance(node, n.Agent | n.Skill):
            yield from _names_in(node.items, name)
        elif isinstance(node, n.State):
            yield from ((field.name.name, "state", inside, field.span) for field in node.fields)
        elif isinstance(node, n.Variable):
            yield from _variables(node, inside)


def _name_and_kind(node: n.Node) -> tuple[str, str]:
    """What something declares; an empty name where it is nothing, or more than one."""
    match node:
        case n.Handler(name=n.Name(name=name)):
            return name, "handler"
        case n.Function(name=str(name)) | n.FunctionStatement(function=n.Function(name=str(name))):
            return name, "function"
        case _ if type(node) in KINDS:
            own = getattr(node, "name", None)
            return (own.value if isinstance(own, n.Text) else getattr(own, "name", "")), KINDS[type(node)]
    return "", ""


def _variables(node: n.Variable, inside: str) -> Iterator[tuple[str, str, str, Span]]:
    for declarator in node.declarators:
        if isinstance(declarator.pattern, n.Binding):
            yield declarator.pattern.name, "variable", inside, declarator.span


def _lines(source: Source, span: Span) -> tuple[int, int]:
    last = max(span.start, span.end - 1)
    return source.position(span.start).line, source.position(last).line
