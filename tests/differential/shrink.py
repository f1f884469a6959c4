"""A program that differs to a smaller one that still does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

GROUP = re.compile(r"\([^()\n]*\)|\[[^\[\]\n]*\]|`[^`\n]*`|'[^'\n]*'")
MOST_TRIES = 400


def shrink(program: str, differs: Callable[[str], bool]) -> str:
    """The smallest program that is found by leaving statements and parts of expressions out.

    Args:
        differs: whether a program still shows the difference.
    """
    tries = 0
    progress = True
    while progress and tries < MOST_TRIES:
        progress = False
        for smaller in _reductions(program):
            tries += 1
            if differs(smaller):
                program, progress = smaller, True
                break
            if tries >= MOST_TRIES:
                break
    return program


def _reductions(program: str) -> Iterator[str]:
    """Programs with one thing less, the largest things first."""
    lines = program.split("\n")
    stretches = sorted(_statements(lines), key=lambda stretch: stretch[0] - stretch[1])
    for start, end in stretches:
        yield "\n".join(lines[:start] + lines[end:])
    for start, end in stretches:
        if end - start > 2:
            yield "\n".join(lines[:start] + lines[start + 1 : end - 1] + lines[end:])
    for found in GROUP.finditer(program):
        for less in (found[0][0] + found[0][-1], "0"):
            if len(less) < len(found[0]):
                yield program[: found.start()] + less + program[found.end() :]


def _statements(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Where statements begin and end: lines that belong together by their braces."""
    for start in range(len(lines)):
        depth = 0
        for end in range(start, len(lines)):
            depth += sum((c in "([{") - (c in ")]}") for c in lines[end])
            if depth < 0:
                break
            if depth == 0:
                yield start, end + 1
                break
