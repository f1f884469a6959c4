"""The code of a module: compiled by Python, its functions called as in the program."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from types import CodeType

from koi_lang.compiler.codegen import py_ast as py

# No name of a program has a blank.
BEGUN = "has begun"
# What the compiler calls functions without a name that are no lambda.
ANONYMOUS = re.compile(r"anonymous(?:_\d+)?")
# A name in Python and the first line of its definition.
Definition = tuple[str, int]


def compile_module(tree: ast.Module, path: str) -> CodeType:
    """The code of a module whose functions are called as in the program, in tracebacks, debuggers and profiles.

    Raises:
        RecursionError: the code is nested too deeply for Python.
    """
    names = dict(_names(tree))
    if sys.version_info < (3, 12):
        _test_inside_loops(tree)
    if sys.version_info < (3, 13):
        _begin_before_loops(tree)
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    return _rename_code(code, names, "", "")


def _test_inside_loops(tree: ast.Module) -> None:
    """Have `while` loops test at the beginning of their body.

    Python 3.11 specializes the instructions of a function that was called, or has jumped back unconditionally, eight
    times. The conditional jump at the end of `while test` does not count, so a long loop would stay slow.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
            at = py.at_of(node.test)
            node.body.insert(0, ast.If(ast.UnaryOp(ast.Not(), node.test, **at), [ast.Break(**at)], [], **at))
            node.test = py.constant(True, at)


def _begin_before_loops(tree: ast.Module) -> None:
    """Have no `try` begin with a loop.

    What interrupts code that computes is raised as a loop begins again, by the instruction before its first one. Where
    that is not in the `try`, it passes by the `finally`. From Python 3.13 on nothing is raised there.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and isinstance(node.body[0], ast.While):
            at = py.at_of(node.body[0])
            node.body.insert(0, py.assign(BEGUN, py.constant(None, at), at))


def _names(tree: ast.Module) -> Iterator[tuple[Definition, str]]:
    """The definitions that a decorator tells their name in Koi."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr="named"), args=[ast.Constant(value=str(name))]):
                    yield (node.name, min(each.lineno for each in node.decorator_list)), name


def _rename_code(code: CodeType, names: Mapping[Definition, str], before: str, after: str) -> CodeType:
    """Code with the code inside of it; `before` and `after` are the qualified names of what it stands in."""
    name = names.get((code.co_name, code.co_firstlineno), code.co_name)
    name = "<anonymous>" if ANONYMOUS.fullmatch(name) else name
    head = code.co_qualname.removesuffix(code.co_name)
    qualified = f"{after}{head.removeprefix(before)}{name}"
    outer = ("", "") if code.co_name == "<module>" else (code.co_qualname, qualified)
    inner = (_rename_code(each, names, *outer) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_name=name, co_qualname=qualified, co_consts=tuple(inner))
