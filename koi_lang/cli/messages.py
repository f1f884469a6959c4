"""Problems as the command line shows them: on stderr, with files named from the folder the person is in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from koi_lang.diagnostics import CompileError, Diagnostic, render
from koi_lang.failures import explain


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Every diagnostic, with an empty line behind it."""
    for diagnostic in diagnostics:
        click.echo(render(diagnostic, _here()) + "\n", err=True)


def show_error(error: BaseException) -> None:
    """What ended a command."""
    if isinstance(error, CompileError):
        show_diagnostics(error.diagnostics)
    else:
        click.echo(explain(error, _here()), err=True)


def show_warnings(warnings: Iterable[str]) -> None:
    """Warnings that were rendered when the program was compiled."""
    for warning in warnings:
        click.echo(warning.replace(f"--> {_here()}/", "--> ") + "\n", err=True)


def _here() -> str:
    return Path.cwd().as_posix()
