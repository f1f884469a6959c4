"""The path of a program to the Python modules of all its files, or to what is wrong with them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from koi_lang.compiler.analysis import Analysis, analyse
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen.module import module
from koi_lang.compiler.imports import Files, Loaded, load
from koi_lang.compiler.rules import check
from koi_lang.diagnostics import CompileError, Diagnostic, Place
from koi_lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class Checked:
    """A program whose files were read and checked.

    Attributes:
        files: the analysed files, the entry first; empty when some file has syntax errors.
        diagnostics: every problem, files in the order of import, places in order.
        read: content of every file that was read, by path.
    """

    files: tuple[Analysis, ...]
    diagnostics: tuple[Diagnostic, ...]
    read: dict[str, bytes]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that keep the program from running."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error")


def check_program(path: str, files: Files, *, strict: bool = False) -> Checked:
    """Read a program and report all its problems; `strict` makes errors of warnings. Raises OSError for the entry."""
    loaded = load(path, files)
    if loaded.problems:
        return Checked((), _ordered(loaded, loaded.problems), loaded.read)
    try:
        analysed = tuple(analyse(unit) for unit in loaded.units)
        problems = check(analysed)
    except RecursionError:
        return Checked((), (too_deep(loaded.units[0].source),), loaded.read)
    if strict:
        problems = [replace(problem, severity="error") for problem in problems]
    return Checked(analysed, _ordered(loaded, problems), loaded.read)


def generate(file: Analysis) -> ast.Module:
    """The Python module of a checked file. Raises CompileError for the few things only generation finds."""
    try:
        return module(file)
    except BuildError as error:
        place = Place(file.unit.source, error.span)
        raise CompileError([Diagnostic("E0102", "error", error.message, place, help=error.help)]) from None
    except RecursionError:
        raise CompileError([too_deep(file.unit.source)]) from None


def too_deep(source: Source) -> Diagnostic:
    """The problem of a file whose code is nested deeper than Python can follow."""
    place = Place(source, Span(0, 1))
    return Diagnostic(
        "E0104", "error", "this file nests its code too deeply", place, help="split the deepest expression."
    )


def _ordered(loaded: Loaded, problems: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    files = {unit.source.path: index for index, unit in enumerate(loaded.units)}
    return tuple(sorted(problems, key=lambda problem: (files.get(problem.place.source.path, 0), problem.place.span)))
