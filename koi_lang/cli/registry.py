"""`koi registry`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koi_lang import settings
from koi_lang.runtime.registry import Registry, open_registry


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show or clear the registry of this folder."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(stats)


@command.command()
def stats() -> None:
    """Show how many entries there are, how large the store is, and where."""
    opened = _open_registry()
    found = asyncio.run(opened.stats())
    opened.close()
    click.echo(
        f"backend  {found['backend']}\nfile     {found['file']}\nentries  {found['count']}\nsize     {found['size']}"
    )


@command.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear(yes: bool) -> None:
    """Remove all entries."""
    if not yes:
        click.confirm("Remove all entries of this folder's registry?", abort=True, err=True)
    opened = _open_registry()
    count = asyncio.run(opened.clear())
    opened.close()
    click.echo(f"removed {count} entr{'y' if count == 1 else 'ies'}")


def _open_registry() -> Registry:
    folder = Path.cwd()
    return open_registry(folder, settings.koi_config(settings.read_settings(folder)))
