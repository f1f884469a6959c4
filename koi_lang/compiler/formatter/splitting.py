"""Where a line that is too long is split: at a statement within another one, at operators, or at brackets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from koi_lang.compiler.formatter.breaks import Breaks, separates
from koi_lang.compiler.formatter.pieces import OPENERS, Piece

WIDTH = 120
# How many columns may follow brackets that are broken although they end before the line becomes too long.
LONGEST_TAIL = 40
# Of places that are equally deep in brackets, the one that is taken first.
STATEMENT, CONDITIONAL, BRACKETS = 0, 1, 9
OPERATORS = {"??": 2, "||": 3, "&&": 4, "+": 5}


class Splitter:
    """Splits lines by what it adds to the breaks of a program."""

    def __init__(self, pieces: list[Piece], breaks: Breaks) -> None:
        self.pieces, self.breaks = pieces, breaks
        around = breaks.around
        # How many commas are directly in brackets, and in which brackets there are operators.
        self.commas = Counter(around[index] for index, piece in enumerate(pieces) if separates(piece))
        self.operated = {around[index] for index, piece in enumerate(pieces) if _rank_of(piece) is not None}

    def split(self, start: int, columns: Sequence[int]) -> bool:
        """Split a line that is too long at the outermost place where that helps; whether there was one.

        Args:
            start: the piece that begins the line.
            columns: where each of its pieces ends, at least up to the first that ends too far right.
        """
        over = next((number for number, column in enumerate(columns) if column > WIDTH), None)
        if over is None:
            return False
        places = (self._place(index, start, over, columns) for index in range(start, start + over + 1))
        found = min((place for place in places if place is not None), default=None)
        if found is None:
            return False
        _, rank, index = found
        steps = self.breaks.flat_steps(abs(index))
        if steps is not None:
            self.breaks.broken.add(steps)
        elif rank == BRACKETS:
            self.breaks.broken.add(abs(index))
        else:
            self.breaks.kept.update([index] if rank == STATEMENT else self._operators_like(index, start))
        return True

    def _place(self, index: int, start: int, over: int, columns: Sequence[int]) -> tuple[int, int, int] | None:
        """A place to split a line at; of several the least is taken: the outermost, loosest, of brackets the last."""
        piece, depth = self.pieces[index], self.breaks.depths[index]
        if piece.is_solid:
            return None
        if index > start and piece.anchor is not None and not self.breaks.is_joined(index):
            return depth, STATEMENT, index
        if piece.text in OPENERS:
            is_place = self._can_break(index) and self._helps(index, start, over, columns)
            return (depth, BRACKETS, -index) if is_place else None
        rank = _rank_of(piece)
        return (depth, rank, index) if rank is not None and index > start else None

    def _operators_like(self, index: int, start: int) -> list[int]:
        """All operators of a line that are split with one of them."""
        around, rank = self.breaks.around, _rank_of(self.pieces[index])
        found, at = [], start + 1
        while at < len(self.pieces) and not self.breaks.begins_line(at):
            if around[at] == around[index] and _rank_of(self.pieces[at]) == rank:
                found.append(at)
            at += 1
        return found

    def _can_break(self, opener: int) -> bool:
        piece = self.pieces[opener]
        if opener in self.breaks.broken or piece.partner is None or piece.partner == opener + 1:
            return False
        return self.commas[opener] > 0 or piece.text == "{" or opener in self.operated

    def _helps(self, opener: int, start: int, over: int, columns: Sequence[int]) -> bool:
        """Whether brackets reach to where the line is too long, or nearly so."""
        closer = (self.pieces[opener].partner or 0) - start
        return closer >= over or columns[-1] - columns[closer] <= LONGEST_TAIL


def _rank_of(piece: Piece) -> int | None:
    """How loosely an operator binds that a line may be split at, the loosest first; None for all other pieces."""
    if piece.rule == "conditional":
        return CONDITIONAL if piece.text in ("?", ":") else None
    return OPERATORS.get(piece.text) if piece.rule in ("operation", "operator", "weak_operator") else None
