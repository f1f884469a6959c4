"""The LALR parser of the grammar: a part of a text to nodes, or to its first problem."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from typing import Any

from lark import Lark, TextSlice, Token, Tree
from lark.exceptions import UnexpectedInput

from koi_lang import settings
from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import Builder, BuildError
from koi_lang.compiler.literals import unescape
from koi_lang.compiler.syntax_errors import Surroundings, explain, explain_neighbours, nested_too_deeply
from koi_lang.diagnostics import Diagnostic, LabeledSpan
from koi_lang.source import Source, Span
from koi_lang.system import resources

OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "start": ["program", "expression"],
    "keep_all_tokens": True,
    "maybe_placeholders": True,
}
# What may stand between two statements on one line that are not kept apart.
BESIDE = re.compile(r"(?:[^\S\n]|/\*[^\n]*?\*/)*+")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read of a part of a text.

    Attributes:
        declarations: none where there is a problem.
        failed: the offset that reading got to; None without a problem.
        explain: the problem, if there is one.
    """

    declarations: tuple[n.Declaration, ...] = ()
    failed: int | None = None
    explain: Callable[[], Diagnostic] | None = None

    @property
    def problem(self) -> Diagnostic | None:
        """What keeps the text from being read."""
        return self.explain() if self.explain else None


def parse_declarations(source: Source, span: Span, around: Surroundings) -> Parsed:
    """Read a part of a source as declarations."""
    try:
        program = _parse(source, span, "program", around)
    except _ProblemError as error:
        return Parsed((), error.failed, error.explain)
    return Parsed(program.declarations if isinstance(program, n.Program) else ())


def parse_expression(source: Source, span: Span) -> tuple[n.Expression | None, Diagnostic | None]:
    """Read a piece of a source as one expression; spans are those of the whole source."""
    try:
        found = _parse(source, span, "expression", Surroundings())
    except _ProblemError as error:
        return None, error.explain()
    return (found if isinstance(found, n.Expression) else None), None


def parse_tokens(text: str) -> Tree[Any] | None:
    """The tree of the grammar of a file, with every token; comments stand between these. None if it has errors."""
    try:
        return _token_parser().parse(text, start="program")
    except UnexpectedInput:
        return None


class _ProblemError(Exception):
    """A text cannot be read; `failed` is the offset where this showed."""

    def __init__(self, failed: int, explain: Callable[[], Diagnostic]) -> None:
        super().__init__(failed)
        self.failed, self.explain = failed, explain


def _parse(source: Source, span: Span, rule: str, around: Surroundings) -> n.Program | n.Expression:
    lark, builder = _lark()
    for noted in (builder.pending, builder.neighbours, builder.agents, builder.yields):
        noted.clear()
    try:
        result: Any = lark.parse(TextSlice(source.text, *span), start=rule)
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        failed = span.end if token is not None and token.type == "$END" else error.pos_in_stream or 0
        raise _ProblemError(failed, partial(explain, source, error, span, around)) from None
    except BuildError as error:
        raise _misuse(source, error) from None
    except RecursionError:
        raise _ProblemError(span.start, partial(nested_too_deeply, source, span)) from None
    _check(source, builder)
    return result  # type: ignore[no-any-return]


def _check(source: Source, builder: Builder) -> None:
    """Raise the first problem that only shows when everything was read."""
    for misplaced in builder.pending.values():
        raise _misuse(source, misplaced)
    for first, second in sorted(builder.neighbours):
        if BESIDE.fullmatch(source.text, first.end, second.start):
            raise _ProblemError(second.start, partial(explain_neighbours, source, first, second))


def _misuse(source: Source, error: BuildError) -> _ProblemError:
    place = LabeledSpan(source, source.first_line(error.span))
    problem = Diagnostic(error.code, "error", error.message, place, help=error.help)
    return _ProblemError(error.span.start, lambda: problem)


@cache
def _lark() -> tuple[Lark, Builder]:
    """The parser with its builder; its tables are kept in the cache folder."""
    builder = Builder()
    text = resources.grammar().read_text("utf-8")
    readers = dict.fromkeys(("NAME", "WORD"), _in_letters)
    return Lark(text, transformer=builder, cache=_tables(text), lexer_callbacks=readers, **OPTIONS), builder


def _in_letters(token: Token) -> Token:
    """A name in whose spelling numbers stand for letters; one that is reserved is a mere word."""
    if "\\" not in token:
        return token
    spelling = unescape(token)
    name = _token_parser().get_terminal("NAME").pattern.to_regexp()
    is_name = token.type == "NAME" and re.fullmatch(name, spelling) is not None
    return token.update("NAME" if is_name else "WORD", spelling)


@cache
def _token_parser() -> Lark:
    """The parser without a builder; it uses the same tables."""
    text = resources.grammar().read_text("utf-8")
    return Lark(text, cache=_tables(text), **OPTIONS)


class _TablesPath(str):
    """The path of kept tables, without a say in whether they fit: they do wherever they have been moved or copied to.

    Lark compares the texts of all options with those that the tables were made with, that of the path among them.
    """

    def __str__(self) -> str:
        return "tables"


def _tables(grammar: str) -> str | bool:
    """The file that keeps the parser's tables; False where no file can be written."""
    folder = settings.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return _TablesPath(folder / f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}.lark")
