"""`koi lsp`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from koi_lang.errors import UsageError
from koi_lang.grants import permits
from koi_lang.lazy import lazy_module
from koi_lang.program.files import DiskFiles
from koi_lang.system.installation import this_installation

if TYPE_CHECKING:
    from koi_lang.runtime.actions import lookup
else:
    lookup = lazy_module("koi_lang.runtime.actions.lookup")

# The packages of the extra `lsp`, and what they stand on.
NEEDED = frozenset({"pygls", "lsprotocol", "cattrs", "attrs"})


def count_actions(capabilities: Sequence[str]) -> int:
    """How many built-in actions a role with some permissions allows in any run, as `koi audit` lists them."""
    kinds = (kind for kind in lookup.all_actions() if not kind.is_occasional)
    has_outputs = any(permits(capabilities, permission) for permission in lookup.LONG_RESULTS)
    return has_outputs + sum(kind.needs is None or permits(capabilities, kind.needs) for kind in kinds)


@click.command()
@click.option("--stdio", is_flag=True, help="Speak on stdin and stdout, as always; some editors say so.")
def command(stdio: bool) -> None:
    """Serve an editor: problems while typing, fixes, completion, definitions, renaming.

    The editor starts it and speaks the Language Server Protocol on stdin and stdout.
    """
    try:
        from koi_lang.lsp.server import serve
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in NEEDED:
            raise
        help = f"install what it needs: `{this_installation().install_command('lsp')}`."
        raise UsageError(f"`koi lsp` needs the package `{package}`", help=help) from error
    # What modules print is no part of the protocol.
    stdout = sys.stdout.buffer
    with redirect_stdout(sys.stderr):
        serve(DiskFiles(), count_actions, sys.stdin.buffer, stdout)
