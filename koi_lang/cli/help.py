"""`koi help`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from koi_lang.cli.command_table import SHOWS_ALL

ALL = "all"


@click.command()
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, words: Sequence[str]) -> None:
    """Show the help of a COMMAND, such as `runs costs`; with `all` every command is listed, also those for tools."""
    koi = context.find_root()
    if tuple(words) == (ALL,):
        koi.meta[SHOWS_ALL] = True
        click.echo(koi.get_help())
    else:
        koi.command.main([*words, "--help"], prog_name="koi", standalone_mode=False)
