"""A plugin of coverage.py: `.koi` files to their lines and those that ran. `[run] plugins = koi_lang.coverage`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

from coverage.exceptions import PluginError
from coverage.plugin import CoveragePlugin, FileReporter, FileTracer

from koi_lang.errors import KoiError
from koi_lang.program import loader
from koi_lang.source import is_program

EXCLUDED = "pragma: no cover"
CLOSING = " \t\r})];,"


class KoiPlugin(CoveragePlugin):
    """Tells coverage.py about `.koi` files."""

    def file_tracer(self, filename: str) -> FileTracer | None:
        """Traces code that was compiled from `.koi` files."""
        return KoiTracer(filename) if is_program(filename) else None

    def file_reporter(self, filename: str) -> FileReporter:
        """Knows the lines of a `.koi` file."""
        return KoiReporter(filename)

    def find_executable_files(self, src_dir: str) -> Iterable[str]:
        """The `.koi` files in a folder, so that those that never ran are reported too."""
        return sorted(str(path) for path in Path(src_dir).rglob("*.koi") if path.is_file())


class KoiTracer(FileTracer):
    """The code carries the positions of the source already."""

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def source_filename(self) -> str:
        """The `.koi` file."""
        return self.filename


class KoiReporter(FileReporter):
    """The lines of one `.koi` file that can be executed."""

    def source(self) -> str:
        """The text of the file."""
        return Path(self.filename).read_text("utf-8-sig")

    def lines(self) -> set[int]:
        """Lines with code; the ends of blocks do not count."""
        text = self.source().split("\n")
        return {line for line in _lines(self._code) if text[line - 1].strip(CLOSING)} - self.excluded_lines()

    def excluded_lines(self) -> set[int]:
        """Lines with a mark, and all of a function whose first line has it."""
        marked = {number for number, line in enumerate(self.source().split("\n"), 1) if EXCLUDED in line}
        inside = (_lines(code) for code in _functions(self._code) if code.co_firstlineno in marked)
        return marked.union(*inside)

    @cached_property
    def _code(self) -> CodeType:
        try:
            return loader.load_compiled(self.filename).code
        except KoiError as error:
            raise PluginError(f"it cannot be compiled\n{error.message}") from error


def _functions(code: CodeType) -> Iterator[CodeType]:
    """All functions and classes in some code, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def _lines(code: CodeType) -> set[int]:
    """Lines of some code and of all functions in it; what the compiler added has no width."""
    every = (positions for each in (code, *_functions(code)) for positions in each.co_positions())
    return {line for line, end, start, stop in every if line is not None and (line, start) != (end, stop)}


def coverage_init(registry: Any, options: dict[str, Any]) -> None:
    """Called by coverage.py."""
    registry.add_file_tracer(KoiPlugin())
