"""Where lines end: before which tokens the person who wrote a program ended them, and where brackets are broken."""

from __future__ import annotations

from itertools import accumulate

from koi_lang.compiler.formatter.pieces import CLOSERS, OPENERS, Piece

# Braces that hold steps or declarations: if a line ends anywhere in them, each of their items has its own.
STEPS = frozenset(
    "agent block budget compose expose handler_body override phase phases resilience role skill state switch_statement "
    "team transition transition_choice transitions".split()
)
OPERATIONS = frozenset(
    {"operation", "operator", "weak_operator", "cast", "conditional", "playbook_parts", "prompt_parts"}
)
UNIONS = frozenset({"type", "intersection"})
# What is listed without brackets around it, and what is listed in `<…>`.
LISTS = frozenset({"uses", "variable", "examples", "transition_events"})
IN_ANGLES = frozenset({"generic_type", "generics", "call", "new"})
LINKS = frozenset({".", "?."})
ASSIGNING = frozenset({"=", "=>"})
PROGRAM = -1


class Breaks:
    """Which brackets are broken, and which pieces begin a line for another reason.

    Attributes:
        around: for every piece the opener of the brackets around it, for closers too; `PROGRAM` outside of all.
        depths: how many brackets are around each piece.
        steps: the opener of the innermost steps around each piece.
        edges: the opener whose being broken puts a piece on a new line; None for pieces within an item.
        broken: the openers of brackets that have each item on a line of its own.
        kept: pieces that begin a line whatever is broken.
    """

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.around, self.depths = _enclosing(pieces)
        self.steps = _enclosing_steps(pieces, self.around)
        self.edges = [self._edge(index) for index in range(len(pieces))]
        self.broken: set[int] = {PROGRAM}
        self.kept: set[int] = set()
        for index, piece in enumerate(pieces):
            if index and is_forced(piece):
                self.kept.add(index)
                self.broken.add(self.around[index])
            elif piece.newlines and index and self._may_stay(index):
                self.kept.add(index)
        self._break_brackets()
        self._break_clauses()
        self._break_around()

    def _edge(self, index: int) -> int | None:
        piece, opener = self.pieces[index], self.around[index]
        if piece.text in CLOSERS:
            return piece.partner
        if piece.begins_item or (opener != PROGRAM and index == opener + 1):
            return opener
        before = self.pieces[index - 1]
        return opener if opener != PROGRAM and self.around[index - 1] == opener and separates(before) else None

    def _break_brackets(self) -> None:
        """Break what the person has broken, and braces whose items nothing would keep apart on one line."""
        ends = list(accumulate(count_newlines(piece) + piece.text.count("\n") for piece in self.pieces))
        for index, piece in enumerate(self.pieces):
            if piece.text not in OPENERS or piece.partner is None or piece.partner == index + 1:
                continue
            until = piece.partner if piece.rule in STEPS else index + 1
            if piece.rule == "switch_statement" or ends[until] - self.pieces[until].text.count("\n") > ends[index]:
                self.broken.add(index)
        for index, piece in enumerate(self.pieces):
            if piece.begins_item and index - 1 != self.around[index] and self.pieces[index - 1].text not in (",", ";"):
                self.broken.add(self.around[index])

    def _break_clauses(self) -> None:
        """Put the statements of a clause on lines of their own, unless there is just one, beside `case`."""
        found: dict[int, list[int]] = {}
        for index, piece in enumerate(self.pieces):
            if piece.anchor is not None and self.pieces[piece.anchor].rule == "clause":
                found.setdefault(piece.anchor, []).append(index)
        for statements in found.values():
            if len(statements) > 1 or count_newlines(self.pieces[statements[0]]):
                self.kept.update(statements)
            else:
                self.edges[statements[0]] = None

    def _break_around(self) -> None:
        """Break all steps that a line end stands in."""
        seen = {PROGRAM}
        for index in [*self.broken, *self.kept]:
            opener = index if index == PROGRAM else self.steps[index]
            while opener not in seen:
                seen.add(opener)
                self.broken.add(opener)
                opener = self.steps[opener]

    def flat_steps(self, index: int) -> int | None:
        """The opener of the outermost steps around a piece that stand on one line."""
        found, opener = None, self.steps[index]
        while opener not in self.broken:
            found, opener = opener, self.steps[opener]
        return found

    def _may_stay(self, index: int) -> bool:
        """Whether a line end that the person wrote within a step is kept."""
        piece, before = self.pieces[index], self.pieces[index - 1]
        if piece.anchor is not None:
            return not self.is_joined(index)
        if piece.text in LINKS or before.text in ASSIGNING or before.kind == "ASSIGN":
            return True
        if before.text == "," and before.rule in LISTS:
            return True
        return _is_operator(piece) or (_is_operator(before) and piece.text not in CLOSERS)

    def is_joined(self, index: int) -> bool:
        """Whether a piece is the `if` of an `else if`, or an `else` behind a block: these stay on their line."""
        piece, before = self.pieces[index], self.pieces[index - 1]
        if piece.kind == "ELSE":
            return before.text == "}" and before.rule == "block"
        return piece.kind == "IF" and before.kind == "ELSE"

    def begins_line(self, index: int) -> bool:
        """Whether a piece begins a line."""
        return self.edges[index] in self.broken or index in self.kept


def separates(piece: Piece) -> bool:
    """Whether a piece is a comma between items of brackets."""
    return piece.text == "," and piece.rule not in LISTS and piece.rule not in IN_ANGLES


def is_forced(piece: Piece) -> bool:
    """Whether the comments before a piece keep it from the line of the piece before."""
    return any(each.is_line or each.newlines for each in piece.comments)


def count_newlines(piece: Piece) -> int:
    """How many line ends stand before a piece, those in and around its comments included."""
    return piece.newlines + sum(each.newlines + each.text.count("\n") for each in piece.comments)


def _is_operator(piece: Piece) -> bool:
    return piece.rule in OPERATIONS or (piece.rule in UNIONS and piece.text in ("|", "&"))


def _enclosing(pieces: list[Piece]) -> tuple[list[int], list[int]]:
    around = []
    depths = []
    opened = [PROGRAM]
    for index, piece in enumerate(pieces):
        if piece.text in CLOSERS:
            opened.pop()
            around.append(piece.partner if piece.partner is not None else PROGRAM)
        else:
            around.append(opened[-1])
        depths.append(len(opened))
        if piece.text in OPENERS:
            opened.append(index)
    return around, depths


def _enclosing_steps(pieces: list[Piece], around: list[int]) -> list[int]:
    found: list[int] = []
    for index, piece in enumerate(pieces):
        opener = around[index] if piece.text not in CLOSERS else around[around[index]]
        found.append(opener if opener == PROGRAM or pieces[opener].rule in STEPS else found[opener])
    return found
