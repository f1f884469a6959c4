"""`koi version`."""

from __future__ import annotations

import platform

import click

from koi_lang.version import __version__


@click.command()
def command() -> None:
    """Show the version of Koi, of Python, and the platform."""
    click.echo(f"koi {__version__} (Python {platform.python_version()}, {platform.system()} {platform.machine()})")
