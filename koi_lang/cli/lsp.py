"""`koi lsp`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import click

from koi_lang.errors import UsageError
from koi_lang.program.files import DiskFiles


@click.command()
def command() -> None:
    """Serve an editor: problems while typing, fixes, completion, definitions, renaming.

    The editor starts it and speaks the Language Server Protocol on stdin and stdout.
    """
    try:
        from koi_lang.lsp.server import serve
    except ModuleNotFoundError as error:
        help = "install what it needs: `pip install 'koi-lang[lsp]'`."
        raise UsageError(f"`koi lsp` needs the package `{error.name}`", help=help) from error
    # What modules print is no part of the protocol.
    stdout = sys.stdout.buffer
    with redirect_stdout(sys.stderr):
        serve(DiskFiles(), sys.stdin.buffer, stdout)
