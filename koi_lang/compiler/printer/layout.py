"""Generated Python text to the same in the layout people use: blank lines, short lines, texts over several lines."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from koi_lang.compiler.printer.line_breaks import break_line

LEAST_TEXT = 40
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
# What a line with a text of several lines on it, or with the start of a docstring, has in it.
LINES_OF_TEXT = re.compile(r"""\\n|\"{3}|'{3}""")


def lay_out(text: str, previous: ast.stmt | None = None) -> str:
    """The same module as `ast.unparse` wrote it, to be read. Whatever is done here leaves the syntax tree alone.

    Args:
        text: a module, or some of its statements.
        previous: the statement before them.
    """
    tree = ast.parse(text)
    lines = text.split("\n")
    blanks = dict(_blanks(tree.body, 2, previous))
    docstrings, texts = _docstrings_and_texts(tree, lines)
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        if number in blanks:
            while result and not result[-1]:
                result.pop()
            result += [""] * blanks[number]
        short = [line] if number in docstrings else break_line(line)
        result += _with_texts(short, line, texts[number]) if number in texts else short
    return "\n".join(result)


# ---------------------------------------------------------------- blank lines


def _blanks(body: Sequence[ast.stmt], around: int, previous: ast.stmt | None = None) -> Iterator[tuple[int, int]]:
    """First line of a statement and how many blank lines stand before it, where that is settled."""
    for statement in body:
        if previous is None:
            yield _first_line(statement), 0
        elif isinstance(statement, DEFINITIONS) or isinstance(previous, DEFINITIONS):
            yield _first_line(statement), around
        elif around == 2 and _kind(previous) != _kind(statement):
            yield _first_line(statement), 1
        previous = statement
        for block in _blocks(statement):
            yield from _blanks(block, 1)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, [])
        is_elif = name == "orelse" and len(block) == 1 and isinstance(block[0], ast.If)
        if not is_elif:
            yield block
        else:
            yield from _blocks(block[0])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def _first_line(node: ast.stmt | ast.expr) -> int:
    decorators = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _kind(statement: ast.stmt) -> str:
    if _is_docstring(statement):
        return "docstring"
    return "import" if isinstance(statement, IMPORTS) else "statement"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# ---------------------------------------------------------------- texts


def _docstrings_and_texts(tree: ast.Module, lines: Sequence[str]) -> tuple[set[int], dict[int, list[ast.Constant]]]:
    """The lines of docstrings, which are left alone, and by its line each text of several lines written on one."""
    docstrings: set[int] = set()
    texts: dict[int, list[ast.Constant]] = {}
    for node in _nodes_on(tree, [number for number, line in enumerate(lines, 1) if LINES_OF_TEXT.search(line)]):
        if isinstance(node, ast.Expr) and _is_docstring(node):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Constant) and _is_long(node):
            texts.setdefault(node.lineno, []).append(node)
    return docstrings, texts


def _nodes_on(tree: ast.Module, numbers: Sequence[int]) -> Iterator[ast.AST]:
    """The nodes that stand on one of some lines, whose numbers are in order, and those around them."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if _stands_on(child, numbers)]


def _stands_on(node: ast.AST, numbers: Sequence[int]) -> bool:
    """Whether one of some lines is among those of a node; nodes without a place of their own may be anywhere."""
    if not isinstance(node, (ast.stmt, ast.expr)):
        return bool(numbers)
    at = bisect_left(numbers, _first_line(node))
    return at < len(numbers) and numbers[at] <= (node.end_lineno or node.lineno)


def _with_texts(lines: Sequence[str], whole: str, texts: Sequence[ast.Constant]) -> list[str]:
    """The lines that a whole line was broken into, its long texts in triple quotes."""
    rest, result, encoded = "\n".join(lines), "", whole.encode()
    for node in sorted(texts, key=lambda node: node.col_offset):
        literal = encoded[node.col_offset : node.end_col_offset].decode()
        before, _, rest = rest.partition(literal)
        result += before + _triple_quoted(str(node.value))
    return (result + rest).split("\n")


def _is_long(node: ast.Constant) -> bool:
    """Whether a constant is a text of several lines that is written on one."""
    is_text = isinstance(node.value, str) and "\n" in node.value and len(node.value) >= LEAST_TEXT
    return is_text and node.lineno == node.end_lineno


def _triple_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    shown = "".join(
        character if character == "\n" or character.isprintable() else repr(character)[1:-1] for character in escaped
    )
    return f'"""{shown[:-1]}\\""""' if shown.endswith('"') else f'"""{shown}"""'
