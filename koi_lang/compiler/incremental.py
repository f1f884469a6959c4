"""Incremental checking: what was read of a program is kept for the next check of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import Checked, check_program
from koi_lang.compiler.declaration_cache import DeclarationCache
from koi_lang.compiler.imports import Files
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source


class IncrementalChecker:
    """Checks one program again and again; the result is that of `check_program`.

    A file that did not change is not read again, and of one that did, only the declarations that changed. What is kept
    is what the last two checks have read, so memory is bounded by the size of the program.
    """

    def __init__(self) -> None:
        self._before: dict[str, _File] = {}
        self._now: dict[str, _File] = {}

    def check(self, path: str, files: Files, *, strict: bool = False) -> Checked:
        """Read what has changed since the last check, and report all problems. Raises OSError for the entry."""
        self._before, self._now = self._now, {}
        return check_program(path, files, strict=strict, read=self._read)

    def _read(self, source: Source) -> tuple[n.Program, list[Diagnostic]]:
        file = self._now.setdefault(source.path, self._before.get(source.path) or _File())
        if file.read is None or file.source != source:
            file.source, file.read = source, parse(source, file.declarations)
        program, problems = file.read
        return program, list(problems)


@dataclass(slots=True)
class _File:
    """One file as it was read last."""

    source: Source | None = None
    read: tuple[n.Program, list[Diagnostic]] | None = None
    declarations: DeclarationCache = field(default_factory=DeclarationCache)
