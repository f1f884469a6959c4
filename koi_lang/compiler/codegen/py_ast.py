"""Short constructors of Python syntax, each with its place in the Koi source."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypedDict

LOAD, STORE = ast.Load(), ast.Store()


class At(TypedDict):
    """A place as Python syntax trees carry it: lines from 1, columns in UTF-8 bytes from 0."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


def at_of(node: ast.expr | ast.stmt) -> At:
    """Where a node of Python syntax stands."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return {"lineno": node.lineno, "col_offset": node.col_offset, "end_lineno": end_line, "end_col_offset": end_column}


def load(name: str, at: At) -> ast.Name:
    """`name`."""
    return ast.Name(name, LOAD, **at)


def store(name: str, at: At) -> ast.Name:
    """`name` as a target."""
    return ast.Name(name, STORE, **at)


def constant(value: str | float | bool | None, at: At) -> ast.expr:
    """A literal; negative and non-finite numbers do not occur."""
    return ast.Constant(value, **at)


def attribute(value: ast.expr, name: str, at: At) -> ast.Attribute:
    """`value.name`."""
    return ast.Attribute(value, name, LOAD, **at)


def koi(name: str, at: At) -> ast.Attribute:
    """`koi.name`: something of the prelude."""
    return ast.Attribute(ast.Name("koi", LOAD, **at), name, LOAD, **at)


def call(function: ast.expr, arguments: Sequence[ast.expr], at: At, **keywords: ast.expr | None) -> ast.Call:
    """`function(arguments, key=value)`; keywords that are None are left out."""
    named = [ast.keyword(key, value, **at) for key, value in keywords.items() if value is not None]
    return ast.Call(function, list(arguments), named, **at)


def helper(name: str, arguments: Sequence[ast.expr], at: At) -> ast.Call:
    """`koi.name(arguments)`."""
    return ast.Call(koi(name, at), list(arguments), [], **at)


def walrus(name: str, value: ast.expr, at: At) -> ast.NamedExpr:
    """`(name := value)`."""
    return ast.NamedExpr(store(name, at), value, **at)


def assign(name: str, value: ast.expr, at: At) -> ast.Assign:
    """`name = value`."""
    return ast.Assign([store(name, at)], value, **at)


def evaluate(value: ast.expr, at: At) -> ast.Expr:
    """An expression as a statement."""
    return ast.Expr(value, **at)


def parameter_list(
    names: Sequence[ast.arg], defaults: Sequence[ast.expr], rest: ast.arg | None, taken: Sequence[str], at: At
) -> ast.arguments:
    """Parameters of a function; `taken` are variables it takes along by value as keyword-only defaults."""
    keyword_only = [ast.arg(name, **at) for name in taken]
    return ast.arguments([], list(names), rest, keyword_only, [load(name, at) for name in taken], None, list(defaults))


def function(
    name: str, arguments: ast.arguments, body: Sequence[ast.stmt], at: At, *, is_async: bool = False
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """`def name(arguments): body`, without decorators."""
    kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
    return kind(name, arguments, list(body) or [ast.Pass(**at)], [], None, None, **at)


def thunk(value: ast.expr, at: At, *parameters: str) -> ast.Lambda:
    """`lambda parameters: value`."""
    names = [ast.arg(name, **at) for name in parameters]
    return ast.Lambda(parameter_list(names, (), None, (), at), value, **at)


def text_list(names: Sequence[str], at: At) -> ast.List:
    """A list of text constants."""
    return ast.List([constant(name, at) for name in names], LOAD, **at)
