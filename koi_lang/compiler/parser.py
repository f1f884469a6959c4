"""The text of a program to its syntax tree, and what is wrong with its spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from lark import Lark, TextSlice
from lark.exceptions import UnexpectedInput

from koi_lang import resources, settings
from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import Builder, BuildError
from koi_lang.compiler.recovery import recover
from koi_lang.compiler.syntax_errors import explain, explain_neighbours, nested_too_deeply, resume_after
from koi_lang.diagnostics import Diagnostic, LabeledSpan
from koi_lang.source import Source, Span

MOST_PROBLEMS = 20
# What may stand between two statements on one line that are not kept apart.
BESIDE = re.compile(r"(?:[^\S\n]|/\*[^\n]*?\*/)*+")
# Where parsing goes on after an error: a declaration at the start of a line, outside of texts and comments.
RESUME = re.compile(
    r'"{6}(?!")|(?P<fence>"{3,}+)(?s:.)*?(?P=fence)|"{3,}+|//[^\n]*|/\*(?s:.)*?\*/'
    r"|(?P<declaration>^(?:export[ \t]+)?(?:(?:import|package|role|team|agent|skill|mcp|prompt|run|test|eval|type)"
    r"[ \t]+[\w\"'({:\[]|(?P<foreign>class|interface|enum|struct)[ \t]+\w+(?=[^\n]*[{=])))",
    re.MULTILINE | re.IGNORECASE,
)


def parse(source: Source) -> tuple[n.Program, list[Diagnostic]]:
    """Read a whole file. What cannot be read is left out and reported, at most 20 problems."""
    whole = Span(0, len(source.text))
    declarations: list[n.Declaration] = []
    problems: list[Diagnostic] = []
    gaps: list[Span] = []
    start = 0
    while len(problems) < MOST_PROBLEMS:
        found, problem = _attempt(source, Span(start, whole.end))
        declarations += found
        if problem is None:
            break
        failed = resume_after(problem)
        read, reached = _before(source, start, failed)
        resumed = _resume(source.text, start, failed)
        broken = Span(reached, whole.end if resumed is None else resumed)
        recovered = recover(source, broken, problem, _attempt, MOST_PROBLEMS - len(problems))
        declarations += [*read, *recovered.declarations]
        problems += recovered.problems
        gaps += recovered.gaps
        if resumed is None:
            break
        start = resumed
    return n.Program(whole, tuple(declarations), tuple(gaps)), problems


def _attempt(source: Source, span: Span) -> tuple[Sequence[n.Declaration], Diagnostic | None]:
    """Read a part of a source; nothing where there is a problem."""
    try:
        program = _parse(source, span, "program")
        return program.declarations if isinstance(program, n.Program) else (), None
    except _ProblemError as problem:
        return (), problem.diagnostic


def parse_expression(source: Source, span: Span) -> tuple[n.Expression | None, Diagnostic | None]:
    """Read a piece of a source as one expression; spans are those of the whole source."""
    try:
        found = _parse(source, span, "expression")
    except _ProblemError as problem:
        return None, problem.diagnostic
    return (found if isinstance(found, n.Expression) else None), None


class _ProblemError(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def _parse(source: Source, span: Span, rule: str) -> n.Program | n.Expression:
    lark, builder = _lark()
    for noted in (builder.pending, builder.neighbours, builder.agents, builder.yields):
        noted.clear()
    try:
        result: Any = lark.parse(TextSlice(source.text, *span), start=rule)
    except UnexpectedInput as error:
        raise _ProblemError(explain(source, error, span)) from None
    except BuildError as error:
        raise _ProblemError(_misuse(source, error)) from None
    except RecursionError:
        raise _ProblemError(nested_too_deeply(source, span)) from None
    _check(source, builder)
    return result  # type: ignore[no-any-return]


def _check(source: Source, builder: Builder) -> None:
    """Raise the first problem that only shows when everything was read."""
    for misplaced in builder.pending.values():
        raise _ProblemError(_misuse(source, misplaced))
    for first, second in sorted(builder.neighbours):
        if BESIDE.fullmatch(source.text, first.end, second.start):
            raise _ProblemError(explain_neighbours(source, first, second))


def _misuse(source: Source, error: BuildError) -> Diagnostic:
    place = LabeledSpan(source, source.first_line(error.span))
    return Diagnostic(error.code, "error", error.message, place, help=error.help)


def _before(source: Source, start: int, failed: int) -> tuple[Sequence[n.Declaration], int]:
    """The declarations between the start of an attempt and the one that failed, and where they end."""
    begins = [match.start() for match in RESUME.finditer(source.text, start, failed + 1) if match["declaration"]]
    for end in (failed, *begins[-1:]):
        found, problem = _attempt(source, Span(start, end))
        if problem is None:
            return found, end
    return (), start


def _resume(text: str, start: int, failed: int) -> int | None:
    """The next declaration at or after the failure and after the start of this attempt."""
    for match in RESUME.finditer(text, max(failed, start)):
        is_told = match["foreign"] and match.start() == failed
        if match["declaration"] and match.start() > start and not is_told:
            return match.start()
    return None


@cache
def _lark() -> tuple[Lark, Builder]:
    """The parser with its builder; its tables are kept in the cache folder."""
    builder = Builder()
    text = resources.grammar().read_text("utf-8")
    options = {
        "parser": "lalr",
        "start": ["program", "expression"],
        "keep_all_tokens": True,
        "maybe_placeholders": True,
    }
    return Lark(text, transformer=builder, cache=_tables(text), **options), builder


def _tables(grammar: str) -> str | bool:
    """The file that keeps the parser's tables; False where no file can be written."""
    folder = settings.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(folder / f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}.lark")
