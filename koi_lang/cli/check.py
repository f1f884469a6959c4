"""`koi check`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.ui.colours import colour_option
from koi_lang.cli.ui.messages import show_diagnostics
from koi_lang.cli.ui.text import count_text
from koi_lang.diagnostics import Diagnostic
from koi_lang.errors import EXIT_SOURCE
from koi_lang.program import build
from koi_lang.program.files import programs
from koi_lang.settings import read_settings
from koi_lang.setup.name_warnings import mistyped_models


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_program)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON list.")
@colour_option
def command(files: Sequence[str], strict: bool, as_json: bool) -> None:
    """Report the problems of each FILE and of all it imports; of a folder those of every `*.koi` in it."""
    found: dict[Diagnostic, None] = {}
    is_broken = False
    for file in programs(files):
        checked = build.check(file, strict=strict)
        problems = (*checked.diagnostics, *mistyped_models(checked, read_settings()))
        is_broken |= bool(checked.errors)
        if not as_json:
            show_diagnostics(problem for problem in problems if problem not in found)
            click.echo(_summary(file, problems), err=True)
        found |= dict.fromkeys(problems)
    if as_json:
        click.echo(json.dumps([diagnostic.as_data() for diagnostic in found], indent=2))
    sys.exit(EXIT_SOURCE if is_broken else 0)


def _summary(file: str, diagnostics: tuple[Diagnostic, ...]) -> str:
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    told = [count_text(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
    return f"{file}: {', '.join(told) or 'no problems'}"
