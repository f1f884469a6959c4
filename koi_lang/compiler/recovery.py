"""A broken part of a program to what of it can be read: the smallest step around each problem is left out."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.lalr import Parsed
from koi_lang.compiler.relocation import move_problem, relocate
from koi_lang.compiler.source_steps import BOUNDARIES, SourceSteps
from koi_lang.compiler.syntax_errors.scanner import CLOSERS, Scan, ScannedToken, scan
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source, Span

# The file is none of ours, so nothing in it is looked for.
OTHER_FORMAT = "E0122"
# Problems of a word or mark that can be left out alone.
SUPERFLUOUS = frozenset({"E0129", "E0148", "E0603"})
UNRECOGNISED = "E0101"
UNCLOSED = "E0131"
# What is said of a step that one before it reaches into, for want of its end.
DANGLING = frozenset({"E0171", "E0172", "E0183", "E0193"})
# What is said of a step that stands outside, as the block before it was closed too early.
OUTSIDE = frozenset({"E0123", "E0125", "E0153"})
# What is said of the head of a handler or function whose body has no brace: its steps seem to stand beside it.
HEADLESS = frozenset({"E0147", "E0151", "E0162"})
MAX_ATTEMPTS = 60
# How much is read again at most, in characters: large declarations are given up sooner.
MAX_CHARS_READ = 1_000_000
# Problems of texts and comments without an end.
TRIPLE = "E0103"
QUOTED = "E0195"
TEMPLATE = "E0196"
COMMENT = "E0197"
QUOTE_INSIDE = "E0199"
# A line that ends a text in triple quotes: one of code rather than of prose.
CODE_LINE = re.compile(
    r"^[ \t]*(?:\}[ \t]*$|(?:private[ \t]+)?on[ \t]+\w+[ \t]*\(|(?:agent|role|skill|team|prompt)[ \t]+\w+[ \t]*[:({=])",
    re.MULTILINE,
)
LINE = re.compile(r"^(?P<indent>[ \t]*)\S", re.MULTILINE)

Attempt = Callable[[Source, Span], Parsed]


@dataclass(slots=True)
class Recovered:
    """What could be read; `gaps` are the places of what was left out."""

    declarations: Sequence[n.Declaration]
    problems: list[Diagnostic] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Change:
    """Something that is done to a text so that it can be read: a part is left out, or a block is ended."""

    gap: Span
    ends: int = 0


def recover(source: Source, span: Span, first: Diagnostic, attempt: Attempt, most: int) -> Recovered:
    """Read a part of a source again and again, each time without the step that could not be read.

    Args:
        span: from the beginning of the first declaration that cannot be read to that of the next one that may be.
        first: its first problem.
        attempt: reads a part of a source, up to the first problem.
        most: problems to report.
    """
    if first.code == OTHER_FORMAT:
        return Recovered((), [first], [span])
    return _Recovery(source, span, attempt).run(first, most)


class _Recovery:
    def __init__(self, source: Source, span: Span, attempt: Attempt) -> None:
        self.source = source
        self.span = span
        self.attempt = attempt
        self.text = _EditedText(source.text)
        # Whether there is a bracket too many.
        self.has_stray = False
        self.steps = self._find_steps()
        self.problems: list[Diagnostic] = []
        self.gaps: list[Span] = []
        # Where texts without an end stood.
        self.cuts: list[Span] = []
        # The end of a block that was put in, if reading got to there.
        self.missing_end: int | None = None
        self.attempts = min(MAX_ATTEMPTS, max(2, MAX_CHARS_READ // max(1, span.end - span.start)))

    def run(self, problem: Diagnostic | None, most: int) -> Recovered:
        """Go on until there is no problem, or nothing smaller than the whole that could be left out."""
        declarations: Sequence[n.Declaration] = ()
        while problem is not None and self.attempts > 0:
            changes = self._changes(problem, most)
            if not changes:
                break
            declarations, problem = self._try(changes, problem)
        if problem is None:
            return Recovered(declarations, self.problems, self.gaps)
        return Recovered((), self.problems, [self.span])

    def _try(self, changes: list[_Change], problem: Diagnostic) -> tuple[Sequence[n.Declaration], Diagnostic | None]:
        """Read without the problem: the first change counts after which reading gets behind it, else the last."""
        before, gaps = self.text, self.gaps
        for number, change in enumerate(changes, start=1):
            self.text, self.gaps = before, gaps
            self._make(change)
            declarations, following = self._read()
            is_better = following is None or following.place.span.start > problem.place.span.start
            if is_better or number == len(changes):
                break
        self.steps = self._find_steps()
        return declarations, following

    def _read(self) -> tuple[Sequence[n.Declaration], Diagnostic | None]:
        self.attempts -= 1
        text, end = self.text, self.span.end + len(self.text.ends)
        parsed = self.attempt(Source(self.source.path, text.with_ends), Span(self.span.start, end))
        problem = parsed.problem
        self.missing_end = None if parsed.failed is None else text.end_at(parsed.failed)
        if problem is not None:
            return (), move_problem(problem, self.source, text.original)
        if not text.ends:
            return parsed.declarations, None
        return [relocate(declaration, text.original) for declaration in parsed.declarations], None

    def _find_steps(self) -> SourceSteps:
        text = self.text
        found = scan(text.with_ends, Span(self.span.start, self.span.end + len(text.ends)))
        self.has_stray = bool(found.stray)
        pieces = [piece._replace(span=Span(*map(text.original, piece.span))) for piece in found.pieces]
        return SourceSteps(balance(replace(found, pieces=pieces), text.blanked, self.span.end))

    def _changes(self, problem: Diagnostic, most: int) -> list[_Change]:
        """What may be done about a problem, which is reported unless a gap has caused it; nothing: all is left out."""
        touched = next((gap for gap in reversed(self.gaps) if self._is_caused_by(gap, problem)), None)
        if touched is not None:
            return self._leave_out(self.steps.around(touched))
        cause = self._reaching(problem)
        if cause is not None:
            return self._leave_out(cause)
        if self.missing_end is not None:
            return self._leave_out(self.steps.last_step(self.missing_end))
        if not self._is_cut_off(problem):
            if len(self.problems) == most or problem in self.problems:
                return []
            self.problems.append(problem)
        return [change for change in self._options(problem) if change.gap not in self.gaps]

    def _leave_out(self, region: Span | None) -> list[_Change]:
        return [] if region is None or region in self.gaps else [_Change(region)]

    def _options(self, problem: Diagnostic) -> Iterator[_Change]:
        place = problem.place.span
        cut = _open_text(problem.code, self.text.blanked, place, self.span.end)
        if cut is not None:
            region = self._without_end(cut)
            if region is not None:
                yield _Change(region)
            return
        if problem.code in SUPERFLUOUS:
            yield _Change(place)
            return
        for other in problem.others if problem.code == UNCLOSED else ():
            if self.source.text[slice(*other.span)] == "//":  # one of them divides, so the rest of the line counts
                yield _Change(Span(other.span.start + 1, other.span.end))
        end = self.steps.block_end(place.start) if problem.code == UNCLOSED else None
        if end is not None:
            yield _Change(Span(end, end), self.steps.ends_with(place.start, end))
        if problem.code in OUTSIDE:
            closer = self.steps.before(place.start)
            if closer is not None and closer.text == "}":
                yield _Change(closer.span)
        step = self.steps.step(place)
        if step is not None and step.start == place.start:
            before = self.steps.step_before(place.start)
            if before is not None:
                yield _Change(before)
        if step is not None:
            yield _Change(step)

    def _without_end(self, cut: Span) -> Span | None:
        """The step that a text without an end belongs to; None where it is all there is."""
        self.cuts.append(cut)
        self.text = self.text.blank(cut)
        self.steps = self._find_steps()
        before = self.steps.pieces[self.steps.at(cut.start)] if self.steps.pieces else None
        is_beside = before is not None and "\n" not in self.text.blanked[before.span.end : cut.start]
        if before is None or not is_beside or before.text in BOUNDARIES:
            return cut
        step = self.steps.step(before.span)
        return None if step is None else Span(min(step.start, cut.start), max(step.end, cut.end))

    def _is_cut_off(self, problem: Diagnostic) -> bool:
        """Whether a block has no end because it was left out with a text that has none."""
        end = self.steps.block_end(problem.place.span.start) if problem.code == UNCLOSED else None
        if end is None:
            return False
        inside = Span(problem.place.span.start, end)
        cuts = (self.source.text[slice(*cut)] for cut in self.cuts if inside.encloses(cut))
        return any("}" in cut or cut.startswith('"""') for cut in cuts)

    def _reaching(self, problem: Diagnostic) -> Span | None:
        """A gap with the step beside it that a problem behind the gap shows to belong to it.

        It is the step before, where that was the one without an end, or the next one of a body that has no `{`. Where
        there is a `}` too many, the one behind that body belongs to it.
        """
        place = problem.place.span
        before_place = [gap for gap in self.gaps if self.steps.after(gap.end) == place.start]
        if not before_place:
            return None
        gap = max(before_place)
        heads = (each.place.span for each in self.problems if each.code in HEADLESS)
        ends = (self.source.text[head.start : head.end + 1].strip() for head in heads if gap.encloses(head))
        is_headless = any(end in (")", ":") or end.endswith(("):", ":")) for end in ends)
        step = self.steps.step(place) if is_headless else None
        if step is not None and step.start == place.start:
            end = self.steps.after(step.end)
            is_closer = end is not None and self.has_stray and self.text.blanked.startswith("}", end)
            return gap.to(Span(step.start, end + 1) if end is not None and is_closer else step)
        before = self.steps.before(gap.start)
        if before is None or problem.code not in DANGLING or before.text in BOUNDARIES:
            return None
        step = self.steps.step(before.span)
        return None if step is None else step.to(gap)

    def _is_caused_by(self, gap: Span, problem: Diagnostic) -> bool:
        if gap.start == gap.end:
            return False
        at = problem.place.span.start
        following = self.steps.after(gap.end)
        is_closed = following is not None and self.text.blanked.startswith("}", following)
        may_follow = problem.code == UNRECOGNISED or is_closed
        return gap.start <= at <= gap.end or (may_follow and following == at)

    def _make(self, change: _Change) -> None:
        self.gaps = [gap for gap in self.gaps if not change.gap.encloses(gap)] + [change.gap]
        self.text = self.text.end_blocks(change.gap.end, change.ends) if change.ends else self.text.blank(change.gap)


@dataclass(frozen=True)
class _EditedText:
    """A text in which parts are blank, and blocks without an end have one.

    Attributes:
        blanked: as long as the text was.
        ends: where in it a `}` was put in, in order.
    """

    blanked: str
    ends: tuple[int, ...] = ()

    @cached_property
    def with_ends(self) -> str:
        """The text with what was put in."""
        parts = (self.blanked[start:end] for start, end in pairwise((0, *self.ends, len(self.blanked))))
        return "}".join(parts)

    def original(self, offset: int) -> int:
        """The offset in the original text for one in the edited text."""
        # The number of ends before it: each stands as many places further behind as there are others before it.
        number = bisect_left(range(len(self.ends)), offset, key=lambda index: self.ends[index] + index)
        return offset - number

    def end_at(self, offset: int) -> int | None:
        """Where the `}` was put in that stands at an offset in the edited text; None if there is none."""
        original = self.original(offset)
        return original if self.original(offset + 1) == original else None

    def blank(self, region: Span) -> _EditedText:
        """The text without a part of it."""
        blank = re.sub(r"[^\n]", " ", self.blanked[region.start : region.end])
        return replace(self, blanked=self.blanked[: region.start] + blank + self.blanked[region.end :])

    def end_blocks(self, offset: int, number: int) -> _EditedText:
        """The text with so many blocks ended at an offset."""
        return replace(self, ends=tuple(sorted((*self.ends, *[offset] * number))))


CLOSING = frozenset((")", "]", "}", "`"))


def balance(found: Scan, text: str, end: int) -> Scan:
    """The tokens of a text with empty ones where brackets end that nothing closes, so that every opener has a partner.

    Such a bracket ends before the first line behind it that is indented no deeper than its own, else at the end. A line
    that begins with a bracket ends none where it would be a declaration. A bracket whose partner stands further left
    than its line has taken that of another.
    """
    if not found.unclosed and not found.stray:
        return found
    return _Balancing(found, text, end).run()


class _Bracket(NamedTuple):
    """A bracket that is open; `is_suspicious` where its partner is missing, or may be that of another one."""

    opener: int
    start: int
    closer: str
    indent: int
    is_suspicious: bool


class _Balancing:
    def __init__(self, found: Scan, text: str, end: int) -> None:
        self.found = found
        self.text = text
        self.end = end
        self.openers = found.partners.keys() | set(found.unclosed)
        self.indents = _indents(found.pieces, text)
        self.pieces: list[ScannedToken] = []
        self.partners: dict[int, int] = {}
        self.open: list[_Bracket] = []

    def run(self) -> Scan:
        """Go through all tokens once."""
        for number, piece in enumerate(self.found.pieces):
            if piece.fresh:
                self._end_left(number, piece)
            if self._closes(number, piece):
                self._close(piece)
                continue
            self.pieces.append(piece)
            if number in self.openers:
                closer, is_suspicious = CLOSERS[piece.text], self._is_suspicious(number)
                self.open.append(
                    _Bracket(len(self.pieces) - 1, piece.span.start, closer, self.indents[number], is_suspicious)
                )
        while self.open:
            self._end_at(self.end)
        return Scan(self.pieces, self.partners, (), ())

    def _closes(self, number: int, piece: ScannedToken) -> bool:
        """Whether a token closes a bracket, or would if there were one."""
        return piece.kind == "mark" and piece.text in CLOSING and number not in self.openers

    def _is_suspicious(self, number: int) -> bool:
        partner = self.found.partners.get(number)
        if partner is None:
            return True
        is_brace = self.found.pieces[number].text == "{" and self.found.pieces[partner].fresh
        return is_brace and self.indents[partner] < self.indents[number]

    def _end_left(self, number: int, piece: ScannedToken) -> None:
        """End the brackets that a line which is indented no deeper shows to be over."""
        outermost = self.open[0] if self.open else None
        # No declaration begins with a bracket: such a line is inside of what is open, however it is indented.
        if outermost and outermost.is_suspicious and outermost.indent >= self.indents[number] and piece.text in CLOSERS:
            return
        offset = max(self._last_end(), self.text.rfind("\n", 0, piece.span.start))
        while self.open and self.open[-1].is_suspicious and self.open[-1].indent >= self.indents[number]:
            has_partner = self.open[-1].indent == self.indents[number] and self.open[-1].closer == piece.text
            if has_partner:
                return
            self._end_at(offset)

    def _close(self, piece: ScannedToken) -> None:
        """Pair a closer with the nearest opener that it fits, if all those in between have no partner."""
        for bracket in reversed(self.open):
            if bracket.closer == piece.text:
                while self.open[-1] is not bracket:
                    self._end_at(self._last_end())
                self.partners[self.open.pop().opener] = len(self.pieces)
                break
            is_elsewhere = self.text.find("\n", bracket.start, piece.span.start) >= 0
            if not bracket.is_suspicious or (is_elsewhere and piece.text != "}" and bracket.closer == "}"):
                break
        self.pieces.append(piece)

    def _end_at(self, offset: int) -> None:
        bracket = self.open.pop()
        self.partners[bracket.opener] = len(self.pieces)
        self.pieces.append(ScannedToken("mark", bracket.closer, Span(offset, offset), False))

    def _last_end(self) -> int:
        return self.pieces[-1].span.end if self.pieces else 0


def _indents(pieces: Sequence[ScannedToken], text: str) -> list[int]:
    """For every token how far the first one of its line is indented."""
    indents, indent = [], 0
    for piece in pieces:
        if piece.fresh:
            indent = piece.span.start - text.rfind("\n", 0, piece.span.start) - 1
        indents.append(indent)
    return indents


def _open_text(code: str, text: str, place: Span, end: int) -> Span | None:
    """What is left out because of a text without an end; None for other problems.

    Args:
        code: of the problem.
        place: where the text begins.
        end: of the part that is read.
    """
    if code == TRIPLE:
        return Span(place.start, _prose_end(text, place.start, end))
    if code not in (QUOTED, TEMPLATE, COMMENT, QUOTE_INSIDE):
        return None
    line_end = text.find("\n", place.start, end)
    start = place.start
    if code == QUOTE_INSIDE:
        start = max(text.rfind(text[start], 0, start), 0)
    if code == TEMPLATE:
        start = max(start if (at := text.rfind("`", _line_start(text, start), start)) < 0 else at, 0)
    return Span(start, end if line_end < 0 else line_end)


def _prose_end(text: str, start: int, end: int) -> int:
    """Where a text in triple quotes ends: at a line that is indented no deeper, if the next one is; else at code."""
    first_end = text.find("\n", start, end)
    if first_end < 0:
        return end
    opener = LINE.match(text, _line_start(text, start))
    indent = len(opener["indent"]) if opener else 0
    lines = list(LINE.finditer(text, first_end, end))
    is_indented = bool(lines) and len(lines[0]["indent"]) > indent
    for line in lines:
        if (is_indented and len(line["indent"]) <= indent) or CODE_LINE.match(text, line.start()):
            return max(first_end, line.start() - 1)
    return end


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1
