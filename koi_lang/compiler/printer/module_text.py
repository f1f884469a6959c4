"""The text of generated modules, as `koi compile` writes it."""

from __future__ import annotations

import ast
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


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


MIN_TEXT_COLUMNS = 40
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
    rest = "\n".join(lines)
    result = ""
    encoded = whole.encode()
    for node in sorted(texts, key=lambda node: node.col_offset):
        literal = encoded[node.col_offset : node.end_col_offset].decode()
        before, _, rest = rest.partition(literal)
        result += before + _triple_quoted(str(node.value))
    return (result + rest).split("\n")


def _is_long(node: ast.Constant) -> bool:
    """Whether a constant is a text of several lines that is written on one."""
    is_text = isinstance(node.value, str) and "\n" in node.value and len(node.value) >= MIN_TEXT_COLUMNS
    return is_text and node.lineno == node.end_lineno


def _triple_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    shown = "".join(
        character if character == "\n" or character.isprintable() else repr(character)[1:-1] for character in escaped
    )
    return f'"""{shown[:-1]}\\""""' if shown.endswith('"') else f'"""{shown}"""'


WIDTH = 100
INDENT = "    "
TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\b(?:lambda|if|else)\b|[()\[\]{},:]""")
# What may stand before the value of a statement, which then can be put in parentheses.
HEAD = re.compile(r" *(?:return |raise |[\w.]+(?:, [\w.]+)* = )")
CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A bracket, comma, colon, word or text of a line, with the number of brackets open around it."""

    text: str
    start: int
    depth: int


class Bracket(NamedTuple):
    """An outermost bracket: where it opens and closes, and the commas between its items."""

    start: int
    end: int
    commas: list[int]


def break_line(line: str, *, is_item: bool = False) -> list[str]:
    """The line itself if it is short enough, otherwise several; `is_item` says that it stands in open brackets."""
    if len(line) <= WIDTH:
        return [line]
    tokens = list(_tokens(line))
    head = None if is_item else HEAD.match(line)
    choices = [token.start for token in tokens if token.depth == 0 and token.text in ("if", "else")]
    if len(choices) > 1 and is_item:
        return _slice_line(line, [_indent(line), *choices, len(line)], _indent(line))
    if len(choices) > 1 and head is not None:
        indent = _indent(line)
        inside = _slice_line(line, [head.end(), *choices, len(line)], indent + len(INDENT))
        return [line[: head.end()] + "(", *inside, " " * indent + ")"]
    longest = max(_brackets(tokens), key=lambda bracket: bracket.end - bracket.start, default=None)
    return [line] if longest is None else _open_bracket(line, longest, is_item)


def _slice_line(line: str, cuts: Sequence[int], indent: int) -> list[str]:
    """The pieces between some cuts on lines of their own."""
    pieces = [line[left:right].strip() for left, right in pairwise(cuts)]
    return [part for piece in pieces for part in break_line(" " * indent + piece, is_item=True)]


def _open_bracket(line: str, bracket: Bracket, is_item: bool) -> list[str]:
    """The line with each item of a bracket on a line of its own."""
    indent = " " * _indent(line)
    cuts = [bracket.start, *bracket.commas, bracket.end]
    items = [line[left + 1 : right].strip() for left, right in pairwise(cuts)]
    endings = [","] * (len(items) - 1) + ["," if _takes_comma(line, bracket.start) else ""]
    lines = [indent + INDENT + item + ending for item, ending in zip(items, endings, strict=True)]
    inside = [part for each in lines for part in break_line(each, is_item=True)]
    return [line[: bracket.start + 1], *inside, *break_line(indent + line[bracket.end :], is_item=is_item)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _takes_comma(line: str, start: int) -> bool:
    """Whether a comma may follow the last item: in calls, lists and dictionaries, not in `(a)` and `a[b]`."""
    follows_value = start > 0 and (line[start - 1].isalnum() or line[start - 1] in "_)]")
    return follows_value if line[start] == "(" else line[start] == "{" or not follows_value


def _tokens(line: str) -> Iterator[Token]:
    waiting: list[str] = []
    for found in TOKEN.finditer(line):
        text = found[0]
        if waiting and text == waiting[-1]:
            waiting.pop()
        yield Token(text, found.start(), len(waiting))
        if text in CLOSING:
            waiting.append(CLOSING[text])


def _brackets(tokens: Sequence[Token]) -> Iterator[Bracket]:
    """The outermost brackets that hold something; commas between the parameters of a lambda do not count."""
    start = -1
    commas = list[int]()
    parameters = False
    for text, at, depth in tokens:
        if depth == 0 and text in CLOSING:
            start, commas = at, []
        elif depth == 0 and text in CLOSING.values() and 0 <= start < at - 1:
            yield Bracket(start, at, commas)
        elif depth == 1 and text in ("lambda", ":"):
            parameters = text == "lambda"
        elif depth == 1 and text == "," and not parameters:
            commas.append(at)
