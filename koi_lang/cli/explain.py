"""`koi explain`."""

from __future__ import annotations

import click

from koi_lang.cli.completing.values import complete_code
from koi_lang.compiler.rules import explanations
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError


@click.command()
@click.argument("code", required=False, shell_complete=complete_code)
def command(code: str | None) -> None:
    """Explain the CODE of a message; without one, list all codes."""
    known = explanations()
    if code is None:
        for each, text in sorted(known.items()):
            click.echo(f"{each}  {text.splitlines()[0]}")
    elif code.upper() in known:
        click.echo(known[code.upper()])
    else:
        near = suggestion(code.upper(), sorted(known), "code")
        raise UsageError(f"no message has the code `{code}`", help=near)
