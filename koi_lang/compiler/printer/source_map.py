"""A generated syntax tree to Python text, and to a source map (version 3) from that text to the `.koi` file."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from koi_lang.compiler.printer.layout import DEFINITIONS, lay_out

Placed: TypeAlias = "ast.stmt | ast.expr"
PLACED = (ast.stmt, ast.expr)
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Segment(NamedTuple):
    """A place in the generated text and its place in the source; lines and columns from 0, columns in UTF-16 units."""

    line: int
    column: int
    source_line: int
    source_column: int


def write_module(tree: ast.Module) -> str:
    """The readable module of a tree."""
    return "\n".join(written_statements(tree)) + "\n"


def written_statements(tree: ast.Module, beside: Path | None = None, source: str = "") -> Iterator[str]:
    """The readable text of each statement of a module, with the blank lines before it; one after the other, since the
    trees of long ones take much room. Written to another folder than the source's, its paths start from there.
    """
    if beside is not None:
        tree = _moved(tree, _Moved(Path(source).parent, beside.resolve().parent))
    previous: ast.stmt | None = None
    for statement in tree.body:
        yield lay_out(ast.unparse(ast.Module([statement], [])), previous)
        previous = statement


def _moved(tree: ast.Module, mover: _Moved) -> ast.Module:
    """The module with other paths. They stand in statements of its own, not in definitions, which are not copied."""
    body = [each if isinstance(each, DEFINITIONS) else mover.visit(deepcopy(each)) for each in tree.body]
    return ast.Module(body, tree.type_ignores)


class _Moved(ast.NodeTransformer):
    """Makes the paths beside `__file__` relative to another folder."""

    def __init__(self, old: Path, new: Path) -> None:
        self.old, self.new = old, new

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """A call with a path and `__file__`."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        path = node.args[0] if node.args else None
        is_beside = any(isinstance(value, ast.Name) and value.id == "__file__" for value in given)
        if is_beside and isinstance(path, ast.Constant) and isinstance(path.value, str):
            moved = Path(os.path.relpath(self.old / path.value, self.new)).as_posix()
            node.args[0] = ast.Constant(moved if moved.startswith(".") else f"./{moved}")
        return node


def source_map(tree: ast.Module, written: Sequence[str], output: Path, source: str) -> str:
    """The source map of a generated module as JSON.

    Args:
        tree: the module with the positions of the `.koi` file.
        written: its statements, as `written_statements` gives them.
        output: where the text is written; the map names files relative to it.
    """
    segments = _segments(tree, written, Path(source).read_text("utf-8-sig").split("\n"))
    folder = output.resolve().parent
    document = {
        "version": 3,
        "file": output.name,
        "sources": [Path(os.path.relpath(source, folder)).as_posix()],
        "names": [],
        "mappings": _encode(segments, sum(text.count("\n") + 1 for text in written)),
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _segments(tree: ast.Module, written: Sequence[str], original: Sequence[str]) -> Iterator[Segment]:
    """The segments of all statements in order of their place in the generated text."""
    first = 0
    for statement, text in zip(tree.body, written, strict=True):
        generated = text.split("\n")
        yield from _of_statement(statement, generated, first, original)
        first += len(generated)


def _of_statement(
    statement: ast.stmt, generated: Sequence[str], first: int, original: Sequence[str]
) -> Iterator[Segment]:
    """The segments of one statement whose text begins at a line; its tree and that of the text have one shape."""
    [again] = ast.parse("\n".join(generated)).body
    pairs = _pairs(statement, again)
    places = {(place.lineno - 1, place.col_offset, node.lineno - 1, node.col_offset) for node, place in pairs}
    for line, column, source_line, source_column in sorted(places):
        start, source_start = _units(generated[line], column), _units(original[source_line], source_column)
        yield Segment(first + line, start, source_line, source_start)


def _pairs(tree: ast.AST, written: ast.AST) -> Iterator[tuple[Placed, Placed]]:
    """The statements and expressions of two trees of one shape, in no particular order."""
    waiting: list[tuple[Any, Any]] = [(tree, written)]
    while waiting:
        node, place = waiting.pop()
        if isinstance(node, PLACED):
            yield node, place
        for name in node._fields:
            child, other = getattr(node, name), getattr(place, name)
            if isinstance(child, ast.AST):
                waiting.append((child, other))
            elif isinstance(child, list):
                waiting += [pair for pair in zip(child, other, strict=True) if isinstance(pair[0], ast.AST)]


def _units(line: str, byte_column: int) -> int:
    """A column in UTF-8 bytes, as Python counts, in UTF-16 units, as source maps do."""
    if line.isascii():
        return byte_column
    return len(line.encode()[:byte_column].decode("utf-8", "ignore").encode("utf-16-le")) // 2


def _encode(segments: Iterable[Segment], lines: int) -> str:
    """Differences between neighbouring segments as base-64 numbers; a semicolon a line, a comma between segments."""
    rows: list[list[str]] = [[] for _ in range(lines)]
    column = source_line = source_column = line = 0
    previous = None
    for segment in segments:
        if (segment.line, segment.column) == previous:
            continue
        previous = (segment.line, segment.column)
        if segment.line != line:
            line, column = segment.line, 0
        steps = (segment.column - column, 0, segment.source_line - source_line, segment.source_column - source_column)
        rows[line].append("".join(map(_number, steps)))
        _, column, source_line, source_column = segment
    return ";".join(",".join(row) for row in rows)


@lru_cache(4096)
def _number(value: int) -> str:
    """A signed number in base 64, five bits a digit, the lowest first, the sign in the lowest bit."""
    rest = value << 1 if value >= 0 else (-value << 1) | 1
    result = ""
    while True:
        rest, digit = rest >> 5, rest & 31
        result += DIGITS[digit | 32 if rest else digit]
        if not rest:
            return result
