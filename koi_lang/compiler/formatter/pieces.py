"""A program as its tokens, each with its rule of the grammar and with the comments and line ends before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lark import Token, Tree

from koi_lang.source import Span

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(OPENERS.values())
# Whose children each begin a line where the braces around them are broken.
ITEMS: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(("program", "agent_items", "skill_items", "statements", "members", "capabilities"), None),
    "handler_body": frozenset({"guard"}),
    "state": frozenset({"field"}),
    "budget": frozenset({"budget_limit"}),
    "resilience": frozenset({"resilience_property"}),
    "compose": frozenset({"fragments", "template_entry", "model_entry", "rules_entry"}),
    "expose": frozenset({"exposed"}),
    "phases": frozenset({"phase"}),
    "phase": frozenset({"capability", "phase_denial", "phase_setting"}),
    "transitions": frozenset({"transition"}),
    "transition": frozenset({"transition_call", "transition_choice"}),
    "transition_steps": None,
    "object_type": frozenset({"type_field", "other_fields", "type_method"}),
    "switch_statement": frozenset({"clause"}),
}
# Statements that hold another one, which may stand on a line of its own.
HOLDERS = frozenset({"if_statement", "for_each", "for_statement", "for_await", "while_statement", "do_while"})
# What the lexer looks through on one line: the result of an arrow function, and types between a name and its call.
SOLID: dict[str, Callable[[Token], bool]] = {
    "arrow": lambda token: token.type == "RESULT" or token == "=>",
    "call": lambda token: token.type == "TYPE_OPEN" or token == ">",
}
BETWEEN = re.compile(r"(?P<comment>//[^\n]*|/\*(?s:.)*?\*/)|\n|[^\n/]+")


class Comment(NamedTuple):
    """A comment, how many line ends stand before it, and its column from 0."""

    text: str
    newlines: int
    column: int

    @property
    def is_line(self) -> bool:
        """Whether it goes on to the end of its line."""
        return self.text.startswith("//")


@dataclass(slots=True)
class Piece:
    """A token, or a whole template; the last piece of a program is empty and stands for its end.

    Attributes:
        kind: the terminal of the grammar.
        rule: the rule that the token belongs to directly.
        comments: those between the piece before and this one.
        newlines: how many line ends stand before it, behind its comments.
        begins_item: whether a statement, member or field begins here.
        anchor: the piece that a line which begins here is indented from, if that is not the innermost bracket's.
        depth: how many steps it is indented from its anchor.
        partner: the other one of a pair of brackets.
        is_solid: whether the lexer wants it on the line of its neighbours, as types in front of `=>`.
    """

    kind: str
    text: str
    start: int
    end: int
    rule: str
    comments: Sequence[Comment] = ()
    newlines: int = 0
    begins_item: bool = False
    anchor: int | None = None
    depth: int = 1
    partner: int | None = None
    is_solid: bool = False


@dataclass(slots=True)
class _Marks:
    """What the tree says about tokens, by the offsets at which they begin."""

    items: set[int] = field(default_factory=set)
    anchors: dict[int, tuple[int, int]] = field(default_factory=dict)
    solid: list[Span] = field(default_factory=list)


def read_pieces(text: str, tree: Tree[Any]) -> list[Piece]:
    """The pieces of a program, the empty one at its end included."""
    pieces, marks = _collect(text, tree)
    pieces.append(Piece("END", "", len(text), len(text), "program", begins_item=True))
    indexes = {piece.start: index for index, piece in enumerate(pieces)}
    for start in marks.items:
        pieces[indexes[start]].begins_item = True
    for start, (anchor, depth) in marks.anchors.items():
        pieces[indexes[start]].anchor, pieces[indexes[start]].depth = indexes[anchor], depth
    for span in marks.solid:
        for index in range(indexes[span.start], indexes[span.end] + 1):
            pieces[index].is_solid = True
    end = 0
    for piece in pieces:
        if piece.start > end:
            piece.comments, piece.newlines = _read_gap(text, end, piece.start)
        end = piece.end
    _pair(pieces)
    return pieces


def _collect(text: str, tree: Tree[Any]) -> tuple[list[Piece], _Marks]:
    pieces: list[Piece] = []
    marks = _Marks()
    waiting: list[tuple[Any, str]] = [(tree, "")]
    while waiting:
        item, rule = waiting.pop()
        if isinstance(item, Token):
            pieces.append(Piece(item.type, str(item), item.start_pos or 0, item.end_pos or 0, rule))
        elif item.data == "template":
            start, end = item.children[0].start_pos, item.children[-1].end_pos
            pieces.append(Piece("TEMPLATE", text[start:end], start, end, rule))
        else:
            _mark(item, marks)
            waiting += [(child, item.data) for child in reversed(item.children) if child is not None]
    return pieces, marks


def _mark(tree: Tree[Any], marks: _Marks) -> None:
    rule = tree.data
    if rule in ITEMS:
        kinds = ITEMS[rule]
        for child in tree.children:
            if isinstance(child, Tree) and (kinds is None or child.data in kinds):
                marks.items.add(first_token(child))
    elif rule in HOLDERS:
        _mark_held(tree, marks)
    elif rule in SOLID:
        found = [child for child in tree.children if isinstance(child, Token) and SOLID[rule](child)]
        if len(found) == 2:
            marks.solid.append(Span(found[0].start_pos or 0, found[1].start_pos or 0))
    elif rule == "clause":
        for child in _clause_statements(tree):
            marks.anchors[first_token(child)] = (first_token(tree), 1)


def _mark_held(tree: Tree[Any], marks: _Marks) -> None:
    """The statements within an `if` or a loop, and `else`."""
    begin = keyword = first_token(tree)
    for index, child in enumerate(tree.children):
        if isinstance(child, Token) and child.type == "ELSE":
            keyword = child.start_pos or 0
            marks.anchors[keyword] = (begin, 0)
        elif isinstance(child, Tree) and child.data != "block" and _is_held(tree, index):
            marks.anchors.setdefault(first_token(child), (keyword, 1))


def _is_held(tree: Tree[Any], index: int) -> bool:
    if tree.data == "do_while":
        return index == 1
    if tree.data == "if_statement":
        return index in (2, 4)
    return index == len(tree.children) - 1


def _clause_statements(clause: Tree[Any]) -> Iterator[Tree[Any]]:
    return (child for child in clause.children[-1].children if isinstance(child, Tree))


def first_token(tree: Tree[Any]) -> int:
    """The offset at which a tree begins."""
    item: Any = tree
    while isinstance(item, Tree):
        item = next(child for child in item.children if not _is_empty(child))
    return int(item.start_pos)


def _is_empty(child: Any) -> bool:
    """Whether there is no token in a child: a missing part, or a list without items."""
    return child is None or (isinstance(child, Tree) and all(map(_is_empty, child.children)))


def _read_gap(text: str, start: int, end: int) -> tuple[Sequence[Comment], int]:
    """The comments between two tokens, and the line ends behind the last one."""
    comments, newlines = [], 0
    for match in BETWEEN.finditer(text, start, end):
        if match["comment"] is not None:
            column = match.start() - text.rfind("\n", 0, match.start()) - 1
            comments.append(Comment(match["comment"].rstrip(), newlines, column))
            newlines = 0
        elif match[0] == "\n":
            newlines += 1
    return comments, newlines


def _pair(pieces: list[Piece]) -> None:
    opened: list[int] = []
    for index, piece in enumerate(pieces):
        if piece.text in OPENERS:
            opened.append(index)
        elif piece.text in CLOSERS:
            piece.partner = opened.pop()
            pieces[piece.partner].partner = index
