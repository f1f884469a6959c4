"""`koi completion`."""

from __future__ import annotations

from pathlib import Path

import click

from koi_lang.cli.completing import COMPLETE_VARIABLE
from koi_lang.cli.completing.shells import PROGRAM, SHELLS
from koi_lang.errors import UsageError
from koi_lang.settings import variable


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print what completes commands, files, runs, codes and names in SHELL; without it, in the shell of this person.

    In ~/.bashrc or ~/.zshrc write eval "$(koi completion)"; for fish, koi completion fish >
    ~/.config/fish/completions/koi.fish.
    """
    name = shell or Path(variable("SHELL") or "").name
    if name not in SHELLS:
        message = "`SHELL` names no shell that commands can be completed in"
        raise UsageError(message, help="Write `koi completion bash`, `zsh` or `fish`.")
    made = SHELLS[name](ctx.find_root().command, {}, PROGRAM, COMPLETE_VARIABLE)
    click.echo(made.source(), nl=False)
