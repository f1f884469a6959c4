"""The text of generated modules, as `koi compile` writes it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from koi_lang.compiler.printer.layout import DEFINITIONS, lay_out


def write_module(tree: ast.Module) -> str:
    """The readable module of a tree."""
    return "\n".join(written_statements(tree)) + "\n"


def written_statements(tree: ast.Module, beside: Path | None = None, source: str = "") -> Iterator[str]:
    """The readable text of each statement of a module, with the blank lines before it.

    They come one after the other, since the trees of long modules take much room. Written to another folder than the
    source's, paths in the text start from there.
    """
    if beside is not None:
        tree = _move_paths(tree, _Moved(Path(source).parent, beside.resolve().parent))
    previous: ast.stmt | None = None
    for statement in tree.body:
        yield lay_out(ast.unparse(ast.Module([statement], [])), previous)
        previous = statement


def _move_paths(tree: ast.Module, mover: _Moved) -> ast.Module:
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
