r"""Holes in texts of actions: `${…}` and `{{…}}`, and the backslashes in front of them.

One backslash has the hole stand there as it is written, two stand for a backslash: `\${x}` is the text `${x}`, `\\${x}`
a backslash and a value, `\\\${x}` the text `\${x}`. Elsewhere a backslash is a character like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

HOLE = re.compile(r"\$\{([^{}]+)\}|\{\{([^{}]+)\}\}")


def spelled_in(hole: re.Match[str]) -> str:
    """The expression in a hole."""
    return str(hole[1] or hole[2]).strip()


def is_literal(hole: re.Match[str]) -> bool:
    """Whether a hole stands for nothing but itself."""
    return _backslashes(hole) % 2 == 1


def open_holes(text: str) -> Iterator[re.Match[str]]:
    """The holes of a text that stand for values."""
    return (hole for hole in HOLE.finditer(text) if not is_literal(hole))


def fill_holes(text: str, write: Callable[[re.Match[str]], str]) -> str:
    """A text with the values of its holes."""
    pieces, done = list[str](), 0
    for hole in HOLE.finditer(text):
        count = _backslashes(hole)
        pieces += [text[done : hole.start() - count], "\\" * (count // 2), hole[0] if count % 2 else write(hole)]
        done = hole.end()
    return "".join([*pieces, text[done:]])


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def _backslashes(hole: re.Match[str]) -> int:
    text, start = hole.string, hole.start()
    while start and text[start - 1] == "\\":
        start -= 1
    return hole.start() - start
