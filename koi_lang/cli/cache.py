"""`koi cache`."""

from __future__ import annotations

import click

from koi_lang.program import cache


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show or clear the cache of compiled programs."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(stats)


@command.command()
def stats() -> None:
    """Show where the cache is, how many files it holds and how large they are."""
    found = cache.stats()
    click.echo(f"folder  {found['folder']}\nfiles   {found['files']}\nsize    {found['bytes'] / 1024:.1f} KiB")


@command.command()
def clear() -> None:
    """Remove all compiled programs."""
    count = cache.clear()
    click.echo(f"removed {count} file{'' if count == 1 else 's'}")
