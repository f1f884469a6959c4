"""The path of a program to the Python modules of all its files, or to what is wrong with them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis, analyse
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen.module import module
from koi_lang.compiler.imports import Files, Loaded, Parser, load, standard_names
from koi_lang.compiler.parser import parse
from koi_lang.compiler.rules import check
from koi_lang.compiler.rules.gaps import without_follow_ups
from koi_lang.compiler.rules.prose.permissions import asks_for_action
from koi_lang.compiler.syntax_errors import nested_too_deeply
from koi_lang.diagnostics import CompileError, Diagnostic, LabeledSpan
from koi_lang.source import Source, Span

# Files whose nodes are nested no deeper than this can be compiled; Python allows 20 loops within each other.
SHALLOW = 40
# Codes of imports and files that could not be read.
UNREAD = frozenset({"E0105", "E0106", "E0107", "E0108", "E0118"})


@dataclass(frozen=True, slots=True)
class Checked:
    """A program whose files were read and checked.

    Attributes:
        files: the analysed files, the entry first; empty when not all of the program could be read.
        diagnostics: every problem, files in the order of import, places in order.
        read: content of every file that was read, by path.
        analysed: everything that could be read, the entry first; also when there are errors, without what is broken.
    """

    files: tuple[Analysis, ...]
    diagnostics: tuple[Diagnostic, ...]
    read: dict[str, bytes]
    analysed: tuple[Analysis, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that keep the program from running."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error")


def check_program(path: str, files: Files, *, strict: bool = False, read: Parser = parse) -> Checked:
    """Read a program and report all its problems.

    Args:
        strict: makes errors of warnings.
        read: reads one file.

    Raises:
        OSError: the entry cannot be read.
    """
    loaded = load(path, files, read)
    analysed: tuple[Analysis, ...] = ()
    try:
        analysed = tuple(analyse(unit) for unit in loaded.units)
        problems = check(analysed, partial(standard_names, files))
    except RecursionError:
        return Checked((), (*loaded.problems, too_deep(loaded.units[0].source)), loaded.read, analysed)
    if loaded.problems:
        is_open = any(problem.code in UNREAD for problem in loaded.problems)
        found = without_follow_ups(problems, analysed, is_open=is_open)
        return Checked((), _sort_problems(loaded, [*loaded.problems, *_severe(found, strict)]), loaded.read, analysed)
    if not any(problem.severity == "error" for problem in problems):
        problems += [too_deep(file.unit.source) for file in analysed if not _can_be_compiled(file)]
    return Checked(analysed, _sort_problems(loaded, _severe(problems, strict)), loaded.read, analysed)


def _severe(problems: list[Diagnostic], strict: bool) -> list[Diagnostic]:
    return [replace(problem, severity="error") for problem in problems] if strict else problems


def generate(file: Analysis) -> ast.Module:
    """The Python module of a checked file. Raises CompileError for the few things only generation finds."""
    try:
        return module(file, asks_for_action)
    except BuildError as error:
        place = LabeledSpan(file.unit.source, error.span)
        raise CompileError([Diagnostic("E0102", "error", error.message, place, help=error.help)]) from None
    except RecursionError:
        raise CompileError([too_deep(file.unit.source)]) from None


def _can_be_compiled(file: Analysis) -> bool:
    """Whether Python can follow the nesting of a file; only deep ones are tried."""
    # A loop that may walk over a generator is several of Python's blocks.
    has_generators = any(function.is_generator for function, _ in file.index.of(n.Function))
    has_generators = has_generators or any(loop.waits for loop, _ in file.index.of(n.ForEach))
    if file.index.depth <= (SHALLOW // 3 if has_generators else SHALLOW):
        return True
    try:
        compile(module(file, asks_for_action), file.unit.path, "exec", dont_inherit=True)
    except RecursionError:
        return False
    except SyntaxError as error:
        if "nested" not in str(error):
            raise
        return False
    return True


def too_deep(source: Source) -> Diagnostic:
    """The problem of a file whose code is nested deeper than Python can follow."""
    return nested_too_deeply(source, Span(0, len(source.text)))


def _sort_problems(loaded: Loaded, problems: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    files = {unit.source.path: index for index, unit in enumerate(loaded.units)}
    return tuple(sorted(problems, key=lambda problem: (files.get(problem.place.source.path, 0), problem.place.span)))
