"""The text of a program to its syntax tree, and what is wrong with its spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, partial

from koi_lang.compiler import nodes as n
from koi_lang.compiler.declaration_cache import DeclarationCache, FileSection
from koi_lang.compiler.lalr import parse_declarations, parse_expression
from koi_lang.compiler.recovery import OTHER_FORMAT, recover
from koi_lang.compiler.syntax_errors import Surroundings, resume_after
from koi_lang.compiler.syntax_errors.scanner import scan, scan_until
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source, Span

__all__ = ["MAX_PROBLEMS", "parse", "parse_expression"]

MAX_PROBLEMS = 20
# How much of the text behind a broken section its explanation may look at, in characters.
LOOK_AHEAD = 20_000
ROLE = re.compile(r"^[ \t]*role\s+(\w+)", re.MULTILINE)


def parse(source: Source, cache: DeclarationCache | None = None) -> tuple[n.Program, list[Diagnostic]]:
    """Read a whole file. What cannot be read is left out and reported, at most 20 problems.

    Args:
        cache: what was read of the file before; the result is the same without it.
    """
    declarations: list[n.Declaration] = []
    problems: list[Diagnostic] = []
    gaps: list[Span] = []
    for section in _Sections(source, cache or DeclarationCache()):
        declarations += section.declarations
        problems += section.problems
        gaps += section.gaps
    whole = Span(0, len(source.text))
    return n.Program(whole, tuple(declarations), tuple(gaps)), problems[:MAX_PROBLEMS]


class _Sections:
    """The sections of a file, each read on its own, so that what is wrong with one is nothing to the others."""

    def __init__(self, source: Source, cache: DeclarationCache) -> None:
        self.source = source
        self.text = source.text
        self.cache = cache
        cache.begin()

    def __iter__(self) -> Iterator[FileSection]:
        """Read the file once, from its beginning."""
        start = reported = 0
        while start < len(self.text):
            section = self._whole(Span(start, section_end(self.text, start)))
            if section.failed is not None:
                section = self._not_whole(section, can_report=reported < MAX_PROBLEMS)
            reported += len(section.problems)
            start = section.span.end
            yield section

    def _whole(self, span: Span) -> FileSection:
        """A section as it is; with `failed` where it cannot be read."""

        def read() -> FileSection:
            parsed = parse_declarations(self.source, span, Surroundings())
            return FileSection(span, parsed.declarations, failed=parsed.failed)

        return self.cache.get(self.text[slice(*span)], self.source, span.start, read)

    def _not_whole(self, section: FileSection, can_report: bool) -> FileSection:
        """A section that goes on behind the beginning of another declaration, or one with a problem."""
        if not can_report:
            return FileSection(section.span, gaps=(section.span,))
        span = section.span
        end = closed_section_end(self.text, *span) if self._is_open(section) else None
        if end is not None and end > span.end:
            longer = self._whole(Span(span.start, end))
            if longer.failed is None:
                return longer
            span = longer.span if longer.failed > span.end else span
        return self._recover(span)

    def _is_open(self, section: FileSection) -> bool:
        """Whether a bracket or text of a section may end behind it."""
        if section.failed == section.span.end:
            return True
        last = scan(self.text, section.span).pieces[-1:]
        return bool(last) and last[0].kind == "unclosed" and last[0].span.start == section.failed

    def _recover(self, span: Span) -> FileSection:
        """A section with a problem: what of it can be read, up to the next declaration behind the problem."""
        ahead = min(section_end(self.text, span.end), span.end + LOOK_AHEAD)
        window = Source(self.source.path, self.text[span.start : ahead])
        around = Surroundings(span.start == 0, self._role)
        read = partial(_read_broken, window, Span(0, span.end - span.start), around)
        section = self.cache.get((window.text, span.end - span.start, around), self.source, span.start, read)
        if any(problem.code == OTHER_FORMAT for problem in section.problems):
            rest = Span(span.start, len(self.text))
            return FileSection(rest, problems=section.problems, gaps=(rest,))
        return section

    @cached_property
    def _role(self) -> str:
        declared = ROLE.search(self.text)
        return declared[1] if declared else ""


def _read_broken(window: Source, span: Span, around: Surroundings) -> FileSection:
    """Read the beginning of a text that has a problem; what stands behind the span is only looked at."""
    parsed = parse_declarations(window, span, around)
    problem = parsed.problem
    if problem is None:
        return FileSection(span, parsed.declarations)
    failed = resume_after(problem)
    resumed = resume(window.text, 0, failed, span.end)
    end = span.end if resumed is None else resumed
    attempt = partial(parse_declarations, around=around)
    declarations, reached = _before(window, failed, around)
    recovered = recover(window, Span(reached, end), problem, attempt, MAX_PROBLEMS)
    return FileSection(
        Span(0, end),
        (*declarations, *recovered.declarations),
        tuple(recovered.problems),
        tuple(recovered.gaps),
    )


def _before(window: Source, failed: int, around: Surroundings) -> tuple[tuple[n.Declaration, ...], int]:
    """The declarations before the one that failed, and where they end."""
    begins = list(section_starts(window.text, 0, failed + 1))
    for end in (failed, *begins[-1:]):
        parsed = parse_declarations(window, Span(0, end), around)
        if parsed.failed is None:
            return parsed.declarations, end
    return (), 0


# Declarations at the start of a line, outside of texts in triple quotes and comments. An open comment takes the rest.
STARTS = re.compile(
    r'"{6}(?!")|(?P<fence>"{3,}+)(?s:.)*?(?P=fence)|"{3,}+|//[^\n]*|/\*(?s:.)*?(?:\*/|\Z)'
    r"|(?P<declaration>^(?:export[ \t]+)?(?:(?:import|package|role|team|agent|skill|mcp|prompt|run|test|eval|type)"
    r"[ \t]+[\w\"'({:\[]|(?P<foreign>class|interface|enum|struct)[ \t]+\w+(?=[^\n]*[{=])))",
    re.MULTILINE | re.IGNORECASE,
)


def section_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Where declarations may begin behind the place where one begins."""
    return (
        match.start() for match in STARTS.finditer(text, start, end) if match["declaration"] and match.start() > start
    )


def section_end(text: str, start: int) -> int:
    """The end of the section that begins at an offset: the next beginning of a declaration."""
    return next(section_starts(text, start, len(text)), len(text))


def closed_section_end(text: str, start: int, end: int) -> int | None:
    """The end of a section that holds beginnings of declarations within its brackets or texts; None if it never ends.

    Args:
        end: the beginning of the next declaration, at which something is still open.
    """
    stops = [end, *section_starts(text, end, len(text)), len(text)]
    return scan_until(text, start, stops)


def resume(text: str, start: int, failed: int, end: int) -> int | None:
    """The next declaration at or after a failure, and after the start of the section; None where there is none."""
    for match in STARTS.finditer(text, max(failed, start), end):
        is_told = match["foreign"] and match.start() == failed
        if match["declaration"] and match.start() > start and not is_told:
            return match.start()
    return None
