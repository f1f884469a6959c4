"""Programs to what it costs to lay them out, the Python process included."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import Figure, python, repeat
from benchmarks.programs import code_program

LINES = 10_000


def figures(folder: Path) -> list[Figure]:
    """`koi fmt` of code that is formatted, and of code of which every line is to be changed."""
    program = code_program(LINES)
    loose = program.replace("  ", "   ")
    return [
        Figure(f"CPU of `koi fmt`, {LINES:,} lines", 3, repeat(3, lambda: _cpu_s(folder, loose)), "s"),
        Figure("the same where little is to be changed", 3, repeat(3, lambda: _cpu_s(folder, program)), "s"),
    ]


def _cpu_s(folder: Path, program: str) -> float:
    path = folder / "program.koi"
    path.write_text(program, "utf-8")
    return python("-m", "koi_lang", "fmt", str(path)).cpu_s
