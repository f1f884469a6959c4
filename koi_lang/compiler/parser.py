"""The text of a program to its syntax tree, and what is wrong with its spelling."""

from __future__ import annotations

import re
from functools import cache

from lark import Lark, TextSlice
from lark.exceptions import UnexpectedInput

from koi_lang import resources, settings
from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import Builder, BuildError
from koi_lang.compiler.hints import explain
from koi_lang.diagnostics import Diagnostic, Place
from koi_lang.source import Source, Span

MOST_PROBLEMS = 20
# Where parsing goes on after an error: a declaration at the start of a line, outside of texts and comments.
RESUME = re.compile(
    r'(?P<fence>"{3,})(?s:.)*?(?P=fence)|//[^\n]*|/\*(?s:.)*?\*/'
    r"|(?P<declaration>^(?:export[ \t]+)?(?:import|package|role|team|agent|skill|mcp|prompt|run)[ \t]+[\w\"'])",
    re.MULTILINE | re.IGNORECASE,
)


def parse(source: Source) -> tuple[n.Program, list[Diagnostic]]:
    """Read a whole file. Declarations that cannot be read are left out and reported, at most 20 problems."""
    problems: list[Diagnostic] = []
    declarations: list[n.Declaration] = []
    start: int | None = 0
    while start is not None and len(problems) < MOST_PROBLEMS:
        try:
            declarations += _parse(source, Span(start, len(source.text)), "program").declarations
            start = None
        except _SyntaxProblem as problem:
            problems.append(problem.diagnostic)
            start = _resume(source.text, start, problem.diagnostic.place.span.start)
    return n.Program(Span(0, len(source.text)), tuple(declarations)), problems


def parse_expression(source: Source, span: Span) -> tuple[n.Expression | None, Diagnostic | None]:
    """Read a piece of a source as one expression; spans are those of the whole source."""
    try:
        return _parse(source, span, "expression"), None
    except _SyntaxProblem as problem:
        return None, problem.diagnostic


class _SyntaxProblem(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def _parse(source: Source, span: Span, rule: str) -> n.Program | n.Expression:
    lark, builder = _lark()
    builder.pending.clear()
    try:
        result: n.Program | n.Expression = lark.parse(TextSlice(source.text, *span), start=rule)
    except UnexpectedInput as error:
        raise _SyntaxProblem(explain(source, error, span)) from None
    except BuildError as error:
        raise _SyntaxProblem(_misuse(source, error.span, error.message, error.help)) from None
    for item, message in builder.pending.items():
        raise _SyntaxProblem(_misuse(source, item.span, message, None))
    return result


def _misuse(source: Source, span: Span, message: str, help: str | None) -> Diagnostic:
    return Diagnostic("E0102", "error", message, Place(source, span), help=help)


def _resume(text: str, start: int, failed: int) -> int | None:
    """The next declaration at or after the failure and after the start of this attempt."""
    for match in RESUME.finditer(text, max(failed, start)):
        if match["declaration"] and match.start() > start:
            return match.start()
    return None


@cache
def _lark() -> tuple[Lark, Builder]:
    """The parser with its builder; its tables are kept in the cache folder."""
    builder = Builder()
    text = resources.grammar().read_text("utf-8")
    options = {"parser": "lalr", "start": ["program", "expression"], "keep_all_tokens": True, "maybe_placeholders": True}
    return Lark(text, transformer=builder, cache=_tables(text), **options), builder


def _tables(grammar: str) -> str | bool:
    """The file that keeps the parser's tables; False where no file can be written."""
    from hashlib import sha256

    folder = settings.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(folder / f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}.lark")
