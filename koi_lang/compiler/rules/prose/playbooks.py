"""Playbooks as prose: their sentences with the places of these, and the clauses in which they ask for something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.words import CODE, DATA, HOLE, QUOTE, pattern
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import Fix, replacement
from koi_lang.lazy import lazy_module
from koi_lang.source import Span

if TYPE_CHECKING:
    from koi_lang.llm.rehearsal import quoting, sentences
else:
    # Most of what is compiled anew has no playbook.
    quoting = lazy_module("koi_lang.llm.rehearsal.quoting")
    sentences = lazy_module("koi_lang.llm.rehearsal.sentences")

FENCED = re.compile(r"`{3}.*?`{3}", re.DOTALL)
LEAD = r"(?:{lead}\b[\s,:]*)*"
NEGATED = r"(?:{negation})\b"


@dataclass(frozen=True, eq=False)
class PlaybookSentence:
    """One sentence; offsets in it count from `start`, which counts from the beginning of the text.

    Attributes:
        prose: as long as `written`, with fillers for quotes, code, objects and placeholders.
    """

    written: str
    prose: str
    start: int

    @cached_property
    def is_negated(self) -> bool:
        """Whether it forbids something, or is an example."""
        return self.prose != "" and pattern(f"{LEAD}{NEGATED}").match(self.prose) is not None

    @cached_property
    def clauses(self) -> tuple[int, ...]:
        """Where clauses begin in which the sentence may ask for something to be done."""
        return tuple(self._find_clauses())

    def _find_clauses(self) -> Iterator[int]:
        if self.is_negated:
            return
        begin = _skip_lead(self.prose, 0)
        is_speech = pattern(r"{speech}\b").match(self.prose, begin) is not None
        has_condition = pattern(r"{before}\b").match(self.prose, begin) is not None
        if not has_condition and pattern(r"{statement}\b").match(self.prose, begin):
            return
        if not has_condition:
            yield begin
        joint = r"{then}|,\s*(?:and|y)" if is_speech else "{joint}"
        for found in pattern(rf"(?:(?<=\W)|(?=,))(?:{joint})(?=\W)|[,;]").finditer(self.prose, begin):
            is_comma = found[0] in ",;"
            has_condition = has_condition and not is_comma
            if not has_condition and not (is_speech and is_comma):
                yield _skip_lead(self.prose, found.end())


@dataclass(frozen=True, eq=False)
class PlaybookProse:
    """A text of a playbook as prose."""

    text: n.Text

    @cached_property
    def pieces(self) -> tuple[tuple[quoting.QuotedPiece, int], ...]:
        """Quotes, objects and placeholders, with where they begin."""
        masked = quoting.mask(self.unfenced_text)
        ends = zip(masked.pieces, masked.ends, strict=True)
        return tuple((piece, end - len(piece.source)) for piece, (_, end) in ends)

    @cached_property
    def unfenced_text(self) -> str:
        """The text, with blanks for what stands between three backticks."""
        return FENCED.sub(lambda found: re.sub(r"\S", " ", found[0]), self.text.value)

    @cached_property
    def prose(self) -> str:
        """The text, as long as it is, with fillers for its pieces."""
        parts, at = [], 0
        for piece, start in self.pieces:
            parts += [self.unfenced_text[at:start], _filler(piece) * len(piece.source)]
            at = start + len(piece.source)
        return "".join([*parts, self.unfenced_text[at:]])

    @cached_property
    def sentences(self) -> tuple[PlaybookSentence, ...]:
        """Its sentences in order."""
        spans = ((each.start, each.end) for each in sentences.sentences_of(self.unfenced_text))
        return tuple(PlaybookSentence(self.unfenced_text[a:b], self.prose[a:b], a) for a, b in spans)


@dataclass(frozen=True, eq=False)
class PlaybookText(PlaybookProse):
    """A text of a playbook, and what is around it.

    Attributes:
        is_whole: whether the playbook consists of this text alone.
        answers: whether it is that of an `answer`, which never acts.
    """

    around: Enclosing
    agent: n.Agent
    file: Analysis
    is_whole: bool
    answers: bool = False

    def place(self, start: int, end: int) -> Span:
        """Where a piece of the text stands in the program; the whole text if it is written there in another form."""
        source, at = self.file.unit.source.text, self.text.start
        if at is None:
            at = self.text.span.start + 1
        is_there = source[at + start : at + end] == self.text.value[start:end]
        return Span(at + start, at + end) if is_there else self.text.span

    def replacement(self, start: int, end: int, text: str) -> tuple[Fix, ...]:
        """The fix that writes something else in place of a piece, where that stands in the program as it is."""
        span = self.place(start, end)
        return () if span == self.text.span else replacement(self.file.unit.source, span, text)


def playbook_texts(file: Analysis, _: AnalysedProgram) -> list[PlaybookText]:
    """The texts of the playbooks of a file; asked for by `program.for_file`."""
    return [
        PlaybookText(part, around, around.agent, file, len(playbook.parts) == 1, playbook.answers)
        for playbook, around in file.index.of(n.Playbook)
        for part in playbook.parts
        if isinstance(part, n.Text) and around.agent is not None
    ]


def _skip_lead(prose: str, at: int) -> int:
    """Where a clause begins behind `first,`, `then`, `please` and the like."""
    found = pattern(rf"\s*{LEAD}").match(prose, at)
    return found.end() if found else at


def _filler(piece: quoting.QuotedPiece) -> str:
    if piece.kind == "text":
        return CODE if piece.source.startswith("`") else QUOTE
    return DATA if piece.kind == "data" else HOLE
