"""Python code to the names that it declares, by its syntax tree."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from koi_lang.std.code.symbol_records import OutlineSymbol

# With a larger limit, trees of code that is nested without end could exhaust the stack of a thread.
MOST_FRAMES = 20_000
MAX_TRIES = 5
# What the code is called that is read: warnings about it, such as of `"\d"`, are none of the person's business.
READ_CODE = "<code to outline>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Statements in whose blocks names of the module or class are declared.
BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While)


def python_symbols(text: str) -> list[OutlineSymbol] | None:
    """Classes, functions, methods, and variables of modules and classes; None for what is no code."""
    if sys.getrecursionlimit() > MOST_FRAMES or "\r" in text:  # which ends lines for Python, and for nobody else
        return None
    warnings.filterwarnings("ignore", module=READ_CODE)
    # Before 3.11.8 Python counts the depth of all trees that are made at a time in one place, and parsing ends with a
    # SystemError where another thread parses between two nodes (python/cpython#106905).
    for _ in range(MAX_TRIES):
        try:
            return [*_Declarations(text.split("\n")).of(ast.parse(text, READ_CODE).body, "")]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        except SystemError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class _Declarations:
    lines: list[str]

    def of(self, body: list[ast.stmt], inside: str) -> Iterator[OutlineSymbol]:
        """The names that statements declare, in order."""
        for node in body:
            match node:
                case ast.ClassDef():
                    yield self._definition(node, "class", inside)
                    yield from self.of(node.body, f"{inside}.{node.name}" if inside else node.name)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield self._definition(node, "method" if inside else "function", inside)
                case ast.Assign(targets=targets):
                    yield from self._variables(node, targets, inside)
                case ast.AnnAssign(target=target):
                    yield from self._variables(node, [target], inside)
                case _ if isinstance(node, BRANCHES):
                    yield from self.of(_blocks(node), inside)

    def _definition(self, node: Definition, kind: str, inside: str) -> OutlineSymbol:
        text = self._signature(node)
        return OutlineSymbol(node.name, kind, node.lineno, text, node.end_lineno or 0, inside)

    def _signature(self, node: Definition) -> str:
        """What stands before the body, as it is written."""
        last = max(node.lineno, node.body[0].lineno - 1)
        while last > node.lineno and self.lines[last - 1].lstrip().startswith(("#", "@")):
            last -= 1
        head = " ".join(line.strip() for line in self.lines[node.lineno - 1 : min(last, node.lineno + 9)])
        return head.rstrip().removesuffix(":")

    def _variables(self, node: ast.stmt, targets: list[ast.expr], inside: str) -> Iterator[OutlineSymbol]:
        kind = "field" if inside else "variable"
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for name in names:
                if isinstance(name, ast.Name):
                    text = self.lines[node.lineno - 1].strip()
                    yield OutlineSymbol(name.id, kind, node.lineno, text, node.end_lineno or 0, inside)


def _blocks(node: ast.stmt) -> list[ast.stmt]:
    """What stands in the blocks of a statement, handlers of errors included."""
    found: list[ast.stmt] = []
    for name in ("body", "handlers", "orelse", "finalbody"):
        for each in getattr(node, name, ()):
            found += each.body if isinstance(each, ast.ExceptHandler) else [each]
    return found
