"""A broken piece of a program to what of it can be read: the smallest step around each problem is blanked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.lalr import Parsed
from koi_lang.compiler.relocation import move_problem
from koi_lang.compiler.syntax_errors.scanner import Scan, ScannedToken, scan
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source, Span

# Words and marks that go on with the step before them, and that need another piece behind them.
CONTINUING = frozenset("else catch except finally of in instanceof timeout fails".split())
OPEN_WORDS = frozenset("const let var return await new typeof throw send in of instanceof delete".split())
ENDING = frozenset((")", "]", "}", "`", ";", "++", "--"))
BOUNDARIES = frozenset(("{", "}", ";"))
ENDED = frozenset(("}", ")", ";"))
STARTING = frozenset(("{", "[", "(", "`", "!", "++", "--", "@", "#", "...", "$"))
# Words behind which braces hold an object.
BEFORE_OBJECT = frozenset("return throw in of typeof await case instanceof default const let var".split())
DECLARATIONS = frozenset(
    "import package role team agent skill mcp prompt run test eval export class interface enum".split()
)
# The file is none of ours, so nothing in it is looked for.
OTHER_FORMAT = "E0122"
# Problems of a word or mark that can be left out alone.
SUPERFLUOUS = frozenset({"E0148", "E0603"})
UNRECOGNISED = "E0101"
# What is said of a step that one before it reaches into, for want of its end.
DANGLING = frozenset({"E0171", "E0172", "E0183", "E0193"})
MOST_ATTEMPTS = 60
# How much is read again at most, in characters: large declarations are given up sooner.
MOST_READ = 1_000_000

Attempt = Callable[[Source, Span], Parsed]


@dataclass(slots=True)
class Recovered:
    """What could be read; `gaps` are the places of what was left out."""

    declarations: Sequence[n.Declaration]
    problems: list[Diagnostic] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)


def recover(source: Source, span: Span, first: Diagnostic, attempt: Attempt, most: int) -> Recovered:
    """Read a part of a source again and again, each time without the step that could not be read.

    Args:
        span: from the beginning of the first declaration that cannot be read to that of the next one that may be.
        first: its first problem.
        attempt: reads a part of a source, up to the first problem.
        most: problems to report.
    """
    found = scan(source.text, span)
    if first.code == OTHER_FORMAT:
        return Recovered((), [first], [span])
    if found.unclosed or found.stray or any(piece.kind == "unclosed" for piece in found.pieces):
        return Recovered((), [first], [span])
    return _Recovery(source, span, found, attempt).run(first, most)


class _Recovery:
    def __init__(self, source: Source, span: Span, found: Scan, attempt: Attempt) -> None:
        self.source, self.span, self.attempt = source, span, attempt
        self.steps = _SourceSteps(found)
        self.text = source.text
        self.problems: list[Diagnostic] = []
        self.gaps: list[Span] = []

    def run(self, problem: Diagnostic | None, most: int) -> Recovered:
        """Go on until there is no problem, or nothing smaller than the whole that could be left out."""
        declarations: Sequence[n.Declaration] = ()
        attempts = min(MOST_ATTEMPTS, max(2, MOST_READ // max(1, self.span.end - self.span.start)))
        while problem is not None and attempts > 0:
            region = self._region(problem, most)
            if region is None or region in self.gaps:
                break
            self._blank(region)
            parsed = self.attempt(Source(self.source.path, self.text), self.span)
            declarations, problem = parsed.declarations, parsed.problem
            attempts -= 1
        if problem is None:
            return Recovered(declarations, self.problems, self.gaps)
        return Recovered((), self.problems, [self.span])

    def _region(self, problem: Diagnostic, most: int) -> Span | None:
        """What to leave out because of a problem, which is reported unless a gap has caused it; None for all of it."""
        touched = next((gap for gap in reversed(self.gaps) if self._is_caused_by(gap, problem)), None)
        if touched is not None:
            return self.steps.around(touched)
        cause = self._reaching(problem)
        if cause is not None:
            return cause
        if len(self.problems) == most:
            return None
        self.problems.append(move_problem(problem, self.source))
        if problem.code in SUPERFLUOUS:
            return problem.place.span
        return self.steps.step(problem.place.span)

    def _reaching(self, problem: Diagnostic) -> Span | None:
        """The step before a gap, where a problem behind the gap shows that it was the one without an end."""
        gap = next((gap for gap in self.gaps if self.steps.after(gap.end) == problem.place.span.start), None)
        before = None if gap is None else self.steps.before(gap.start)
        if gap is None or before is None or problem.code not in DANGLING or before.text in BOUNDARIES:
            return None
        step = self.steps.step(before.span)
        return None if step is None else step.to(gap)

    def _is_caused_by(self, gap: Span, problem: Diagnostic) -> bool:
        at = problem.place.span.start
        following = self.steps.after(gap.end)
        may_follow = problem.code == UNRECOGNISED or (following is not None and self.text[following] == "}")
        return gap.start <= at <= gap.end or (may_follow and following == at)

    def _blank(self, region: Span) -> None:
        self.gaps = [gap for gap in self.gaps if not region.encloses(gap)] + [region]
        blank = re.sub(r"[^\n]", " ", self.text[region.start : region.end])
        self.text = self.text[: region.start] + blank + self.text[region.end :]


class _SourceSteps:
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
        if last.text == ";":
            return True
        if piece.text in CONTINUING or _is_open(last) or (piece.kind == "mark" and piece.text not in STARTING):
            return False
        return piece.fresh or (last.text == "}" and piece.kind == "word" and piece.text != "while")


def _is_open(piece: ScannedToken) -> bool:
    """Whether a step cannot end with a piece."""
    return piece.text in OPEN_WORDS if piece.kind == "word" else piece.kind == "mark" and piece.text not in ENDING
