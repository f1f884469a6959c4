"""Generated Python text to the same in the layout people use: blank lines, short lines, texts over several lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from koi_lang.breaks import broken

LEAST_TEXT = 40
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)


def lay_out(text: str) -> str:
    """The same module as `ast.unparse` wrote it, to be read. Whatever is done here leaves the syntax tree alone."""
    return _with_texts(_with_short_lines(_with_blank_lines(text)))


# ---------------------------------------------------------------- blank lines


def _with_blank_lines(text: str) -> str:
    """Two blank lines around definitions at the top, one around those inside and after docstring and imports."""
    wanted = dict(_blanks(ast.parse(text).body, 2))
    result: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if number in wanted:
            while result and not result[-1]:
                result.pop()
            result += [""] * wanted[number]
        result.append(line)
    return "\n".join(result)


def _blanks(body: Sequence[ast.stmt], around: int) -> Iterator[tuple[int, int]]:
    """First line of a statement and how many blank lines stand before it, where that is settled."""
    previous: ast.stmt | None = None
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


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return decorators[0].lineno if decorators else statement.lineno


def _kind(statement: ast.stmt) -> str:
    if _is_docstring(statement):
        return "docstring"
    return "import" if isinstance(statement, IMPORTS) else "statement"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# ---------------------------------------------------------------- short lines


def _with_short_lines(text: str) -> str:
    """Lines that are too long are broken; what stands inside of docstrings is left alone."""
    docstrings = {line for node in ast.walk(ast.parse(text)) for line in _lines_of_docstring(node)}
    result: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        result += [line] if number in docstrings else broken(line)
    return "\n".join(result)


def _lines_of_docstring(node: ast.AST) -> range:
    if isinstance(node, ast.Expr) and _is_docstring(node):
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)


# ---------------------------------------------------------------- texts


def _with_texts(text: str) -> str:
    """Texts of several lines in triple quotes."""
    lines = text.split("\n")
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and _is_long(node)]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line = lines[node.lineno - 1].encode()
        written = _triple_quoted(str(node.value))
        lines[node.lineno - 1] = (line[: node.col_offset] + written.encode() + line[node.end_col_offset :]).decode()
    return "\n".join(lines)


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
