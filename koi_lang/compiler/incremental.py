"""Incremental checking: what was read of a program is kept for the next check of it."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import Checked, check_program
from koi_lang.compiler.imports import Files
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source


class IncrementalChecker:
    """Checks one program again and again; the result is that of `check_program`.

    What is kept is what the last check has read, so memory is bounded by the size of the program.
    """

    def __init__(self) -> None:
        self._known: dict[Source, tuple[n.Program, list[Diagnostic]]] = {}
        self._used: dict[Source, tuple[n.Program, list[Diagnostic]]] = {}

    def check(self, path: str, files: Files, *, strict: bool = False) -> Checked:
        """Read what has changed since the last check, and report all problems. Raises OSError for the entry."""
        self._used = {}
        checked = check_program(path, files, strict=strict, read=self._read)
        self._known = self._used
        return checked

    def _read(self, source: Source) -> tuple[n.Program, list[Diagnostic]]:
        known = self._known.get(source)
        program, problems = self._used[source] = parse(source) if known is None else known
        return program, list(problems)
