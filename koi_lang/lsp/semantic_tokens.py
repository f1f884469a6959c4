"""Semantic colours: names by their definitions; prose, placeholders and actions apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.actions import FIELDS
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.templates import HOLE
from koi_lang.lsp.occurrences import occurrences
from koi_lang.lsp.positions import PositionMap
from koi_lang.lsp.text_names import Prose, prose_of, text_occurrences
from koi_lang.source import Span

# The last three are no standard ones: what a model reads, what is filled in there, and the names of actions.
TYPES = (
    *("class", "interface", "struct", "namespace", "function", "method", "property", "variable", "parameter", "type"),
    *("constant", "prose", "placeholder", "action"),
)
LEGEND = types.SemanticTokensLegend(list(TYPES), ["declaration"])
OF_KINDS = {
    "agent": "class", "role": "interface", "team": "struct", "skill": "namespace", "mcp": "namespace",
    "module": "namespace", "prompt": "constant", "function": "function", "handler": "method", "field": "property",
    "variable": "variable", "parameter": "parameter", "type": "type",
}  # fmt: skip
INTENT = re.compile(r"[\"']intent[\"']\s*:\s*[\"'](\w+)[\"']")
LINE = re.compile(r"[^\r\n]+")
Coloured = tuple[Span, str]


def semantic_tokens(file: Analysis, program: AnalysedProgram, positions: PositionMap) -> types.SemanticTokens:
    """The coloured pieces of a file in the form of the protocol: five numbers each, places from the one before."""
    data: list[int] = []
    line = column = 0
    for span, kind in find_coloured(file, program):
        start, end = positions.position(span.start), positions.position(span.end)
        before = column if start.line == line else 0
        data += [start.line - line, start.character - before, end.character - start.character, TYPES.index(kind), 0]
        line, column = start.line, start.character
    return types.SemanticTokens(data)


def find_coloured(file: Analysis, program: AnalysedProgram) -> list[Coloured]:
    """Pieces with the types of their tokens, in order; none reaches over a line or into another one."""
    names = [
        (each.span, OF_KINDS[each.definitions[0].kind])
        for each in program.for_file(occurrences, file)
        if each.definitions[0].kind in OF_KINDS
    ]
    names += list(_actions_in_code(file))
    in_texts = [
        (each.span, OF_KINDS[each.definitions[0].kind])
        for each in program.for_file(text_occurrences, file)
        if each.definitions[0].kind in OF_KINDS
    ]
    for prose in program.for_file(prose_of, file):
        inner = [piece for piece in in_texts if prose.span.encloses(piece[0])]
        names += _in_prose(prose, inner, file.unit.source.text)
    return _apart(names)


def _actions_in_code(file: Analysis) -> Iterator[Coloured]:
    for call, _ in file.index.of(n.Call):
        match call:
            case n.Call(
                callee=n.Name(name="callAction") | n.Member(name="callAction"), arguments=(n.Text() as name, *_)
            ):
                yield Span(name.span.start + 1, name.span.end - 1), "action"


def _in_prose(prose: Prose, names: list[Coloured], text: str) -> Iterator[Coloured]:
    """A text as prose, but for its placeholders, actions and names."""
    holes = [(Span(*match.span()), "placeholder") for match in HOLE.finditer(text, *prose.span)]
    outside = [piece for piece in names if not any(hole.encloses(piece[0]) for hole, _ in holes)]
    actions = [(Span(*match.span(1)), "action") for match in INTENT.finditer(text, *prose.span) if match[1] in FIELDS]
    special = _apart([*holes, *outside, *actions])
    at = prose.span.start
    for span, kind in [*special, (Span(prose.span.end, prose.span.end), "")]:
        for line in LINE.finditer(text, at, max(at, span.start)):
            yield Span(*line.span()), "prose"
        yield from ((Span(*line.span()), kind) for line in LINE.finditer(text, *span))
        at = span.end


def _apart(pieces: Iterable[Coloured]) -> list[Coloured]:
    """Pieces in order without those that begin in the one before."""
    found: list[Coloured] = []
    for span, kind in sorted(pieces):
        if span.end > span.start and (not found or span.start >= found[-1][0].end):
            found.append((span, kind))
    return found
