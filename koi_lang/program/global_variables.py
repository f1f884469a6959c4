"""The outermost variables of a generated handler as global names of its module, for statements typed one by one."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from itertools import chain

from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.scope import ScopeVariable

Handler = ast.FunctionDef | ast.AsyncFunctionDef


def outermost_variables(file: Analysis, name: str) -> list[ScopeVariable]:
    """The parameters and the variables that the first block of a handler declares."""
    for root, code in file.code.items():
        if getattr(getattr(root, "name", None), "name", None) == name:
            variables = code.functions[root].variables
            return [variable for variable in variables if variable.block.parent is None]
    raise AssertionError(f"no handler `{name}`")


def share_variables(handler: Handler, names: Sequence[str], given: int, *, gives_last: bool) -> None:
    """Rewrite a generated handler in place.

    Args:
        names: Python names that become global.
        given: how many of them the handler is given, which are there already.
        gives_last: whether the value of its last statement is its result.
    """
    if given:  # one statement opens the payload, and one for each name takes it out
        del handler.body[: given + 1]
    last = handler.body[-2] if len(handler.body) > 1 else None
    if gives_last and isinstance(last, ast.Expr):
        handler.body[-2:] = [ast.copy_location(ast.Return(last.value), last)]
    for node in list(ast.walk(handler)):
        if isinstance(node, Handler) and node is not handler:
            node.body = list(chain.from_iterable(_divide_nonlocal(each, frozenset(names)) for each in node.body))
    if names:
        handler.body.insert(0, ast.copy_location(ast.Global(sorted(names)), handler.body[0]))


def _divide_nonlocal(statement: ast.stmt, shared: Set[str]) -> list[ast.stmt]:
    """A statement, where it is `nonlocal` one for the names that remain so and one for those that are global now."""
    if not isinstance(statement, ast.Nonlocal):
        return [statement]
    inner = [name for name in statement.names if name not in shared]
    outer = [name for name in statement.names if name in shared]
    divided: list[ast.stmt] = [*([ast.Nonlocal(inner)] if inner else []), *([ast.Global(outer)] if outer else [])]
    return [ast.copy_location(each, statement) for each in divided]


def shift_lines(tree: ast.AST, lines: int) -> None:
    """Take lines away that stand before the text of a person; what stood in them counts as its first line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.excepthandler):
            continue
        end = node.end_lineno or node.lineno
        if node.lineno <= lines:
            node.lineno, node.col_offset = lines + 1, 0
        if end <= lines:
            end, node.end_col_offset = lines + 1, 0
        node.lineno, node.end_lineno = node.lineno - lines, end - lines
