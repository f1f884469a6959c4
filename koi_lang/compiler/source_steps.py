"""The tokens of a text as steps: statements of blocks, items of agents, declarations."""

from __future__ import annotations

from bisect import bisect_right

from koi_lang.compiler.syntax_errors.scanner import Scan, ScannedToken
from koi_lang.source import Span

# Words and marks that go on with the step before them, and that need another piece behind them.
CONTINUING = frozenset("else catch except finally of in instanceof timeout fails".split())
OPEN_WORDS = frozenset("return await new typeof throw send in of instanceof delete".split())
ENDING = frozenset((")", "]", "}", "`", ";", "++", "--"))
BOUNDARIES = frozenset(("{", "}", ";"))
ENDED = frozenset(("}", ")", ";"))
STARTING = frozenset(("{", "[", "(", "`", "!", "++", "--", "@", "#", "...", "$"))
# Words that begin a part of an agent.
PARTS = frozenset(
    "on private affordance examples uses llm amnesia state expose resilience playbook budget phases transitions".split()
)
# Words behind which braces hold an object.
BEFORE_OBJECT = frozenset("return throw in of typeof await case instanceof default const let var".split())
DECLARATIONS = frozenset(
    "import package role team agent skill mcp prompt run test eval export class interface enum".split()
)


class SourceSteps:
    """The pieces of a text as steps: statements of blocks, items of agents, declarations."""

    def __init__(self, found: Scan) -> None:
        self.pieces = found.pieces
        self.closers = found.partners
        self.parents = self._enclosing()

    def _enclosing(self) -> list[int]:
        """For every piece the opener of the innermost brackets around it; -1 outside of all."""
        parents, opened = [], list[int]()
        ends = {closer: opener for opener, closer in self.closers.items()}
        for index in range(len(self.pieces)):
            if index in ends:
                opened.pop()
            parents.append(opened[-1] if opened else -1)
            if index in self.closers:
                opened.append(index)
        return parents

    def at(self, offset: int) -> int:
        """The piece at an offset, or the one before it."""
        return max(0, bisect_right(self.pieces, offset, key=lambda piece: piece.span.start) - 1)

    def after(self, offset: int) -> int | None:
        """Where the first piece behind an offset begins."""
        index = bisect_right(self.pieces, offset - 1, key=lambda piece: piece.span.start)
        return self.pieces[index].span.start if index < len(self.pieces) else None

    def before(self, offset: int) -> ScannedToken | None:
        """The piece before the one at an offset."""
        index = self.at(offset) - 1
        return self.pieces[index] if index >= 0 else None

    def block_end(self, offset: int) -> int | None:
        """Where the block that begins at an offset ends for want of a brace of its own; None if it has one."""
        opener = self.at(offset)
        is_block = self.pieces[opener].span.start == offset and opener in self.closers and self._is_block(opener)
        return self._missing_end(opener) if is_block else None

    def _missing_end(self, opener: int) -> int | None:
        closer = self.pieces[self.closers[opener]].span
        return closer.start if closer.start == closer.end else None

    def ends_with(self, offset: int, end: int) -> int:
        """How many blocks end at a place, from the one on that begins at an offset."""
        inside = (opener for opener in self.closers if self.pieces[opener].span.start >= offset)
        return sum(self._missing_end(opener) == end and self._is_block(opener) for opener in inside)

    def last_step(self, offset: int) -> Span | None:
        """The last step of the block that ends at an offset for want of a brace; without any the step that it is in."""
        closer = next(index for index in range(len(self.pieces)) if self.pieces[index].span == Span(offset, offset))
        opener = next(opener for opener, partner in self.closers.items() if partner == closer)
        if closer > opener + 1 and self._is_block(opener):
            return self._run(opener, closer - 1, closer - 1)
        block = self._block_of(opener)
        return self._run(block, opener, opener)

    def step_before(self, offset: int) -> Span | None:
        """The step that ends where another one in the same block begins."""
        index = self.at(offset)
        if index == 0 or self._block_of(index - 1) != self._block_of(index):
            return None
        return self._run(self._block_of(index), index - 1, index - 1)

    def step(self, place: Span) -> Span | None:
        """The smallest step, or steps, that a place is in; None where these are all there is."""
        if not self.pieces:
            return None
        first, last = self.at(place.start), self.at(max(place.start, place.end - 1))
        block = self._block_of(first)
        while block != -1 and not self.closers[block] >= last:
            block = self._block_of(block)
        return self._run(block, first, last)

    def around(self, gap: Span) -> Span | None:
        """The next larger piece: all of the block that a gap is in, or the step that the block belongs to."""
        index = self.at(gap.start)
        block = self._block_of(index)
        if block == -1:
            return None
        inside = Span(self.pieces[block].span.end, self.pieces[self.closers[block]].span.start)
        if gap.encloses(inside):
            return self._run(self._block_of(block), block, block)
        return inside

    def _block_of(self, index: int) -> int:
        """The opener of the innermost block around a piece; -1 outside of all."""
        opener = self.parents[index]
        while opener != -1 and not self._is_block(opener):
            opener = self.parents[opener]
        return opener

    def _is_block(self, opener: int) -> bool:
        """Whether braces hold steps rather than fields of an object."""
        if self.pieces[opener].text != "{":
            return False
        before = self.pieces[opener - 1] if opener else None
        if before is None or before.text in (";", "{", "}", ")", "]", "=>"):
            return True
        return before.kind == "text" or (before.kind == "word" and before.text not in BEFORE_OBJECT)

    def _run(self, block: int, first: int, last: int) -> Span | None:
        """The steps of a block that two pieces are in, from the first to the last."""
        inside = self._siblings(block)
        starts = [index for number, index in enumerate(inside) if not number or self._begins(inside[number - 1], index)]
        begin = max((index for index in starts if index <= first), default=starts[0] if starts else first)
        following = min((index for index in starts if index > last), default=None)
        if begin == starts[0] and following is None and block == -1:
            return None
        end = max((index for index in inside if following is None or index < following), default=last)
        return Span(self.pieces[begin].span.start, self.pieces[end].span.end)

    def _is_agent(self, opener: int) -> bool:
        """Whether braces hold the parts of an agent."""
        return any(piece.text.lower() == "agent" for piece in self.pieces[max(0, opener - 4) : opener])

    def _siblings(self, block: int) -> list[int]:
        """The pieces directly in a block, with the openers but not the insides of other brackets."""
        index = block + 1
        end = len(self.pieces) if block == -1 else self.closers[block]
        found = []
        while index < end:
            found.append(index)
            index = self.closers.get(index, index)
            if index != found[-1]:
                found.append(index)
            index += 1
        return found

    def _begins(self, before: int, index: int) -> bool:
        """Whether a step begins with a piece, given the one before it in the same block."""
        last, piece = self.pieces[before], self.pieces[index]
        has_ended = piece.fresh or last.text in ENDED or last.kind in ("text", "triple")
        if self.parents[index] == -1:
            return has_ended and piece.text.lower() in DECLARATIONS and last.text.lower() != "export"
        if last.text == ";" or (piece.fresh and piece.text in PARTS and self._is_agent(self.parents[index])):
            return True
        if piece.text in CONTINUING or _is_open(last) or (piece.kind == "mark" and piece.text not in STARTING):
            return False
        return piece.fresh or (last.text == "}" and piece.kind == "word" and piece.text != "while")


def _is_open(piece: ScannedToken) -> bool:
    """Whether a step cannot end with a piece."""
    return piece.text in OPEN_WORDS if piece.kind == "word" else piece.kind == "mark" and piece.text not in ENDING
