"""`koi compile`."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.ui.output import writing
from koi_lang.compiler.printer.module_text import write_module, written_statements
from koi_lang.lazy import lazy_module
from koi_lang.program import build
from koi_lang.program.files import absolute

if TYPE_CHECKING:
    from koi_lang.cli.ui import messages
else:
    messages = lazy_module("koi_lang.cli.ui.messages")


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write here; - is standard output, as without it.",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def command(file: str, output: Path | None, strict: bool) -> None:
    """Write the Python module of FILE, to be read."""
    with build.collection_paused():
        _write(file, output, strict)
        gc.freeze()  # the process ends: to search what is left for garbage would only take time


def _write(file: str, output: Path | None, strict: bool) -> None:
    trees, checked = build.syntax_trees(file, strict=strict)
    if checked.diagnostics:
        messages.show_diagnostics(checked.diagnostics)
    tree = trees[absolute(file)]
    del trees, checked  # a long program takes as much memory again to be written
    if output is None or output == Path("-"):
        click.echo(write_module(tree), nl=False)
        return
    written = written_statements(tree, beside=output, source=absolute(file))
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("\n".join(written) + "\n", "utf-8")
