"""`koi repl`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import options_from, plain_option, running_options
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.cli.repl import start
else:
    start = lazy_module("koi_lang.cli.repl.start")


@click.command()
@click.argument("file", required=False, shell_complete=complete_program)
@running_options("the whole session", "of an entry")
@plain_option
def command(file: str | None, strict: bool, no_cache: bool, **given: Any) -> None:
    """Type declarations and statements, and see what they give; begin with the declarations of FILE.

    `:help` lists the commands. What is not typed at a terminal is read to its end.
    """
    sys.exit(start.converse(file, options_from(given)))
