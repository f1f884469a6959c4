"""Names of functions in compiled code: those of the program, where Python needed others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from types import CodeType

# What the compiler calls functions without a name that are no lambda.
ANONYMOUS = re.compile(r"anonymous(?:_\d+)?")
# A name in Python and the first line of its definition.
Definition = tuple[str, int]


def with_names_of_program(code: CodeType, tree: ast.Module) -> CodeType:
    """The code of a module whose functions are called as in the program, in tracebacks, debuggers and profiles."""
    return _rename_code(code, dict(_names(tree)), "", "")


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
