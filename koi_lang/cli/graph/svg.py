"""A program as an SVG picture: by Graphviz where it is installed, else in columns."""

from __future__ import annotations

import shutil
import subprocess

from koi_lang.cli.graph.columns import draw_columns
from koi_lang.compiler.program_graph import ProgramGraph

LIMIT_S = 30.0


def draw_svg(graph: ProgramGraph, dot: str) -> str:
    """A picture of a program, whose form for Graphviz is given, too."""
    program = shutil.which("dot")
    return (_laid_out_by(program, dot) if program else "") or draw_columns(graph)


def _laid_out_by(program: str, dot: str) -> str:
    """What Graphviz makes of a graph; empty where it cannot."""
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.rstrip("\n")
