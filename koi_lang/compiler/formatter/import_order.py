"""Imports of the standard library that stand together, in the order of their names.

Other imports stay where they are: their order decides which of two equal names counts, and when Python modules are
executed. No two parts of the standard library have a name in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import STANDARD
from koi_lang.source import Source

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
