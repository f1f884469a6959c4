"""`koi explain`."""

from __future__ import annotations

import click

from koi_lang.compiler.rules import codes, explanation
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError


@click.command()
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain the CODE of a message; without one, list all codes."""
    if code is None:
        for known in codes():
            click.echo(f"{known}  {(explanation(known) or '').partition(chr(10))[0]}")
        return
    text = explanation(code.upper())
    if text is None:
        raise UsageError(f"there is no message `{code}`", help=suggestion(code, codes(), "message"))
    click.echo(text)
