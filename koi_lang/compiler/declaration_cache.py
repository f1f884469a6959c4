"""A cache of declarations by their text: of a file that was changed, one section is read anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from operator import add

from koi_lang.compiler import nodes as n
from koi_lang.compiler.relocation import move_problem, move_span, relocate
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class FileSection:
    """A part of a file that was read on its own.

    Attributes:
        failed: for a section that is no whole declaration, the offset that reading got to; else None.
    """

    span: Span
    declarations: tuple[n.Declaration, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    gaps: tuple[Span, ...] = ()
    failed: int | None = None

    def place(self, source: Source, start: int) -> FileSection:
        """The same text at another offset; nodes that are there already stay what they are."""
        move = partial(add, start - self.span.start)
        problems = tuple(move_problem(problem, source, move) for problem in self.problems)
        if start == self.span.start:
            return replace(self, problems=problems)
        return FileSection(
            move_span(self.span, move),
            tuple(relocate(declaration, move) for declaration in self.declarations),
            problems,
            tuple(move_span(gap, move) for gap in self.gaps),
            None if self.failed is None else move(self.failed),
        )


class DeclarationCache:
    """Sections of one file by what they were read from; holds those of its last two versions."""

    def __init__(self) -> None:
        self._before: dict[Hashable, dict[int, FileSection]] = {}
        self._now: dict[Hashable, dict[int, FileSection]] = {}

    def begin(self) -> None:
        """Forget what the last version did not use."""
        self._before, self._now = self._now, {}

    def get(self, key: Hashable, source: Source, start: int, read: Callable[[], FileSection]) -> FileSection:
        """The section that was read from the same text, at its place in this source; else it is read."""
        known = self._now.get(key) or self._before.get(key)
        section = read() if known is None else known.get(start) or next(iter(known.values()))
        section = section.place(source, start)
        self._now.setdefault(key, {})[start] = section
        return section
