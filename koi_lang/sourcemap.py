"""A generated syntax tree to Python text, and to a source map (version 3) from that text to the `.koi` file."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

from koi_lang.layout import lay_out

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Segment(NamedTuple):
    """A place in the generated text and its place in the source; lines and columns from 0, columns in characters."""

    line: int
    column: int
    source_line: int
    source_column: int


def write_module(tree: ast.Module, beside: Path | None = None, source: str = "") -> str:
    """The readable module of a tree. Written to another folder than the source's, its paths start from there."""
    if beside is not None:
        tree = _Moved(Path(source).parent, beside.resolve().parent).visit(deepcopy(tree))
    return lay_out(ast.unparse(tree)) + "\n"


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


def source_map(tree: ast.Module, text: str, output: Path, source: str) -> str:
    """The source map of a generated module as JSON.

    Args:
        tree: the module with the positions of the `.koi` file.
        text: what `write_module` made of it.
        output: where the text is written; the map names files relative to it.
    """
    segments = sorted(_segments(tree, ast.parse(text), text, Path(source).read_text("utf-8-sig")))
    folder = output.resolve().parent
    document = {
        "version": 3,
        "file": output.name,
        "sources": [Path(os.path.relpath(source, folder)).as_posix()],
        "names": [],
        "mappings": _encode(segments, text.count("\n")),
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _segments(tree: ast.Module, written: ast.Module, text: str, source: str) -> Iterator[Segment]:
    """Both trees have one shape; their nodes are walked in step."""
    generated, original = text.splitlines(), source.split("\n")
    for node, place in zip(ast.walk(tree), ast.walk(written), strict=True):
        if isinstance(node, (ast.stmt, ast.expr)) and isinstance(place, (ast.stmt, ast.expr)):
            line, source_line = place.lineno - 1, node.lineno - 1
            column = _characters(generated[line], place.col_offset)
            yield Segment(line, column, source_line, _characters(original[source_line], node.col_offset))


def _characters(line: str, byte_column: int) -> int:
    return byte_column if line.isascii() else len(line.encode()[:byte_column].decode("utf-8", "ignore"))


def _encode(segments: list[Segment], lines: int) -> str:
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


def _number(value: int) -> str:
    """A signed number in base 64, five bits a digit, the lowest first, the sign in the lowest bit."""
    rest = value << 1 if value >= 0 else (-value << 1) | 1
    result = ""
    while True:
        rest, digit = rest >> 5, rest & 31
        result += DIGITS[digit | 32 if rest else digit]
        if not rest:
            return result
