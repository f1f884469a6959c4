"""What several tests need: programs to diagnostics and to text."""

from __future__ import annotations

from pathlib import Path

from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import Diagnostic, render
from koi_lang.source import Source, decode

HERE = Path(__file__).resolve().parent


def diagnostics_of(path: Path) -> list[Diagnostic]:
    """Everything that is wrong with a program; messages name it by its file name."""
    return list(_diagnostics(decode(path.read_bytes(), path.name)))


def must_not_compile(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a program that has some; anything else that comes out fails the test."""
    found = _diagnostics(Source("test.koi", text))
    assert found, f"nothing is wrong with {text!r}"
    return found


def rendered(diagnostics: list[Diagnostic]) -> str:
    """Diagnostics as a terminal shows them, a blank line between two."""
    return "".join(f"{render(diagnostic)}\n\n" for diagnostic in diagnostics).removesuffix("\n")


def _diagnostics(source: Source) -> tuple[Diagnostic, ...]:
    return tuple(parse(source)[1])
