"""The outline of a document: its declarations as a tree, and its folding ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.symbols import FUNCTION
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Source, Span

Kind = types.SymbolKind
KINDS: dict[type[n.Node], types.SymbolKind] = {
    n.Role: Kind.Interface, n.Agent: Kind.Class, n.Team: Kind.Struct, n.Skill: Kind.Module, n.Mcp: Kind.Module,
    n.Prompt: Kind.Constant, n.TypeDeclaration: Kind.TypeParameter, n.Test: Kind.Event, n.Eval: Kind.Event,
    n.Handler: Kind.Method, n.Function: Kind.Function, n.Field: Kind.Field, n.TeamMember: Kind.Property,
}  # fmt: skip


def document_symbols(file: Analysis, positions: PositionMap) -> list[types.DocumentSymbol]:
    """The declarations of a file with their members, in order."""
    return list(_symbols(file.unit.program.declarations, file.unit.source, positions))


def _symbols(nodes: tuple[n.Node, ...], source: Source, positions: PositionMap) -> Iterator[types.DocumentSymbol]:
    for node in nodes:
        if type(node) not in KINDS:
            continue
        name = _name_of(node, source)
        if name is None:
            continue
        word, place = name
        inner = list(_symbols(_parts_of(node), source, positions))
        span = Span(min(node.span.start, place.start), max(node.span.end, place.end))
        yield types.DocumentSymbol(
            word or "?", KINDS[type(node)], positions.range(span), positions.range(place), children=inner or None
        )


def _parts_of(node: n.Node) -> tuple[n.Node, ...]:
    match node:
        case n.Agent(items=items) | n.Skill(items=items):
            fields = (field for item in items if isinstance(item, n.State) for field in item.fields)
            return tuple(sorted((*items, *fields), key=lambda each: each.span))
        case n.Team(members=members):
            return members
    return ()


def _name_of(node: n.Node, source: Source) -> tuple[str, Span] | None:
    """How a declaration is called, and where that stands."""
    if isinstance(node, n.Function):
        found = FUNCTION.search(source.text, *node.span)
        start = node.span.start if found is None else found.end()
        return (node.name, Span(start, start + len(node.name))) if node.name is not None else None
    name = getattr(node, "key", None) or getattr(node, "name", None)
    if isinstance(name, n.Name):
        return name.name, name.span
    return (name.value, name.span) if isinstance(name, n.Text) else None


def folding_ranges(file: Analysis, positions: PositionMap) -> list[types.FoldingRange]:
    """The ranges of several lines: declarations, blocks, texts, and imports in a row."""
    of, text = file.index.of, file.unit.source.text
    spans = [node.span for kind in KINDS if kind is not n.Field for node, _ in of(kind)]
    spans += [node.span for node, _ in of(n.Block)] + [node.span for node, _ in of(n.Text)]
    spans += [node.span for node, _ in of(n.State)] + [node.span for node, _ in of(n.Object)]
    found = {lines: None for span in spans if (lines := _lines(span, positions)) is not None}
    folds = [types.FoldingRange(start, end) for start, end in found]
    imports = [node.span for node, _ in of(n.Import)]
    if len(imports) > 1:
        block = Span(imports[0].start, imports[-1].end)
        is_alone = not re.search(r"^\s*(?!import\b|//|$)\S", text[block.start : block.end], re.MULTILINE)
        lines = _lines(block, positions)
        if lines is not None and is_alone:
            folds.append(types.FoldingRange(*lines, kind=types.FoldingRangeKind.Imports))
    return sorted(folds, key=lambda fold: (fold.start_line, fold.end_line))


def _lines(span: Span, positions: PositionMap) -> tuple[int, int] | None:
    """The lines from the first of a span to the one before its last mark; None for those on one line."""
    start, end = positions.position(span.start).line, positions.position(span.end).line
    return (start, end - 1) if end - 1 > start else (start, end) if end > start else None
