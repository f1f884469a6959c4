"""`koi update`."""

from __future__ import annotations

import subprocess
import sys

import click

from koi_lang.system.installation import this_installation


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(yes: bool) -> None:
    """Show the command that installs the newest version from where this one came from, and run it if you agree.

    It is one of pip, pipx or uv, whichever has installed Koi, and of git for a clone. Without a terminal it is only
    shown.
    """
    line = this_installation().update_command()
    click.echo(line)
    if yes or (sys.stdin.isatty() and sys.stdout.isatty() and click.confirm("Run it?", err=True)):
        sys.exit(subprocess.run(line, shell=True).returncode)
