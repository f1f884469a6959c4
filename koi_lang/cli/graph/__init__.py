"""`koi graph`."""

from __future__ import annotations

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.graph.formats import FORMATS
from koi_lang.compiler.program_graph import graph_of
from koi_lang.diagnostics import CompileError
from koi_lang.program import build


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.option(
    "--format",
    "kind",
    metavar="FORMAT",
    type=click.Choice(list(FORMATS)),
    default="mermaid",
    help="mermaid (the default), dot, json or svg.",
)
def command(file: str, kind: str) -> None:
    """Draw FILE and what it leads to.

    The picture has agents, teams, roles with their permissions, skills, MCP servers, whom the model of an agent may
    ask, and whom code calls.

    Nothing of the program is run, and no server is started. `svg` is laid out by Graphviz where `dot` is installed,
    else in columns.
    """
    checked = build.check(file)
    if checked.errors:
        raise CompileError(checked.errors)
    click.echo(FORMATS[kind](graph_of(checked.files)))
