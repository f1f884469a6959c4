"""The one layout of Koi programs: tokens are laid out anew, with the syntax tree as guide.

Other imports stay where they are: their order decides which of two equal names counts, and when Python modules are
executed. No two parts of the standard library have a name in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.declaration_cache import DeclarationCache
from koi_lang.compiler.doc_comments import doc_comment
from koi_lang.compiler.formatter.lines import lay_out
from koi_lang.compiler.formatter.pieces import read_pieces
from koi_lang.compiler.imports import STANDARD
from koi_lang.compiler.lalr import parse_tokens
from koi_lang.compiler.nodes import Node
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import CompileError
from koi_lang.errors import KoiError
from koi_lang.source import Source

__all__ = ["FormattingError", "format_source"]


class FormattingError(KoiError):
    """The formatter would have changed what a program means: a mistake of ours, so nothing was changed."""

    def __init__(self, path: str) -> None:
        help = "Please report this mistake of koi together with the file, which is left as it is."
        super().__init__(f"the layout of `{path}` would not mean the same", help=help)


def format_source(source: Source) -> str:
    """The text of a program in the layout of Koi; formatting it again changes nothing.

    Raises:
        CompileError: the program cannot be read.
        FormattingError: the result would not mean the same, which is a mistake of the formatter.
    """
    cache = DeclarationCache()
    program, problems = parse(source, cache)
    if problems:
        raise CompileError(problems)
    ordered, expected = sort_imports(source, program)
    tree = parse_tokens(ordered.text)
    if tree is None:
        raise FormattingError(source.path)
    text = _line_end(source.text).join([*lay_out(read_pieces(ordered.text, tree)), ""])
    result = Source(source.path, text)
    read, problems = parse(result, cache)
    is_kept = is_same_text(ordered.text, text) and is_same_tree(expected, read) and not problems
    if not is_kept or descriptions(source, program) != descriptions(result, read):
        raise FormattingError(source.path)
    return text


def _line_end(text: str) -> str:
    """The line end of a text: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


# What may stand between two imports of one block: no blank line, and no comment.
NEXT_LINE = re.compile(r"[ \t]*\r?\n[ \t]*")


def sort_imports(source: Source, program: n.Program) -> tuple[Source, n.Program]:
    """A program with its imports sorted, as text and as tree; the places in the tree are those that they had."""
    text, declarations = source.text, list(program.declarations)
    for start, block in _blocks(source.text, declarations):
        ordered = sorted(block, key=lambda found: found.path.value)
        if ordered == block:
            continue
        declarations[start : start + len(block)] = ordered
        gaps = [source.text[one.span.end : other.span.start] for one, other in pairwise(block)]
        pieces = [source.text[slice(*found.span)] + gap for found, gap in zip(ordered, [*gaps, ""], strict=True)]
        text = text[: block[0].span.start] + "".join(pieces) + text[block[-1].span.end :]
    return Source(source.path, text), n.Program(program.span, tuple(declarations), program.gaps)


def _blocks(text: str, declarations: list[n.Declaration]) -> Iterator[tuple[int, list[n.Import]]]:
    """The imports of the standard library on neighbouring lines, with the index of the first of them."""
    block: list[n.Import] = []
    for index, found in enumerate([*declarations, None]):
        is_part = isinstance(found, n.Import) and found.path.value.startswith(STANDARD)
        if block and not (is_part and found and NEXT_LINE.fullmatch(text, block[-1].span.end, found.span.start)):
            yield index - len(block), block
            block = []
        if isinstance(found, n.Import) and is_part:
            block.append(found)


ODD_BLANKS = re.compile(r"[\r\f\ufeff]")


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts differ in blanks only; byte-order marks are blanks of the grammar."""
    return "".join(one.replace("\ufeff", "").split()) == "".join(other.replace("\ufeff", "").split())


def is_same_tree(one: Node, other: Node) -> bool:
    """Whether two trees differ in nothing but spans; without recursion, since programs nest deeply."""
    waiting: list[tuple[Any, Any]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, Node):
            waiting += zip(_parts(left), _parts(right), strict=True)
        elif isinstance(left, tuple):
            if len(left) != len(right):
                return False
            waiting += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def _parts(node: Node) -> list[Any]:
    kind: Any = type(node)
    return [getattr(node, name) for name in _compared_fields(kind)]


@cache
def _compared_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a class of nodes that are no places."""
    return tuple(
        field.name
        for field in fields(kind)
        if "Span" not in str(field.type) and not (kind is n.Text and field.name == "start")
    )


def descriptions(source: Source, program: n.Program) -> list[str]:
    """What the comments above the declarations of a program say of them, those above members of agents included.

    All blanks within a line count the same, as they do for a reader.
    """
    text = ODD_BLANKS.sub(" ", source.text)
    described = [
        part
        for declaration in program.declarations
        for part in (declaration, *(declaration.items if isinstance(declaration, n.Agent | n.Skill) else ()))
        if not isinstance(part, n.Import)
    ]
    return [doc_comment(text, part.span.start) for part in described]
