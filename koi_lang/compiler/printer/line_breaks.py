"""A line of Python that is too long to several, broken at its brackets and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

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
    start, commas, parameters = -1, list[int](), False
    for text, at, depth in tokens:
        if depth == 0 and text in CLOSING:
            start, commas = at, []
        elif depth == 0 and text in CLOSING.values() and 0 <= start < at - 1:
            yield Bracket(start, at, commas)
        elif depth == 1 and text in ("lambda", ":"):
            parameters = text == "lambda"
        elif depth == 1 and text == "," and not parameters:
            commas.append(at)
