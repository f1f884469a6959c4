"""`koi check`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import click

from koi_lang import program
from koi_lang.cli.messages import show_diagnostics
from koi_lang.diagnostics import Diagnostic
from koi_lang.errors import EXIT_SOURCE
from koi_lang.modelnames import mistyped_models


@click.command()
@click.argument("file")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON list.")
def command(file: str, strict: bool, as_json: bool) -> None:
    """Report the problems of FILE and of all it imports."""
    checked = program.check(file, strict=strict)
    problems = (*checked.diagnostics, *mistyped_models(checked, Path.cwd()))
    if as_json:
        click.echo(json.dumps([diagnostic.as_data() for diagnostic in problems], indent=2))
    else:
        show_diagnostics(problems)
        click.echo(_summary(file, problems), err=True)
    sys.exit(EXIT_SOURCE if checked.errors else 0)


def _summary(file: str, diagnostics: tuple[Diagnostic, ...]) -> str:
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    told = [f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in ("error", "warning") if counts[kind]]
    return f"{file}: {', '.join(told) or 'no problems'}"
