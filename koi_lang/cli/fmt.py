"""`koi fmt`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from difflib import unified_diff

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.ui.messages import show_error
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import EXIT_FAILED, EXIT_OK, EXIT_SOURCE, KoiError, UsageError, exit_code
from koi_lang.program.build import collection_paused
from koi_lang.program.files import programs
from koi_lang.program.formatting import Formatted, format_bytes, format_file, replace_file

STDIN = "<stdin>"


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...", shell_complete=complete_program)
@click.option(
    "--check", is_flag=True, help="Change nothing; list the files that are not formatted, and fail if any is."
)
@click.option("--diff", is_flag=True, help="Change nothing; show what would be changed.")
@click.option("--stdin", is_flag=True, help="Format standard input, and write it to standard output.")
def command(paths: Sequence[str], check: bool, diff: bool, stdin: bool) -> None:
    """Lay out each file PATH, and of a folder every `*.koi` in it, in the one layout of Koi."""
    if stdin == bool(paths):
        raise UsageError("`koi fmt` takes files and folders, or `--stdin`", help="For all in this folder: `koi fmt .`.")
    with collection_paused():
        if stdin:
            data = sys.stdin.buffer.read()
            sys.exit(_each([STDIN], lambda path: format_bytes(data, path), check, diff))
        sys.exit(_each(programs(paths), format_file, check, diff))


def _each(paths: Sequence[str], laid_out: Callable[[str], Formatted], check: bool, diff: bool) -> int:
    """Format one file after the other; the exit code, that of errors in programs before others."""
    codes = set()
    changed = 0
    for path in paths:
        try:
            formatted = laid_out(path)
            changed += formatted.is_changed
            _tell(formatted, check, diff)
            codes.add(EXIT_FAILED if check and formatted.is_changed else EXIT_OK)
        except KoiError as error:
            show_error(error)
            codes.add(exit_code(error))
    if paths != [STDIN] and not changed and codes == {EXIT_OK}:
        click.echo(f"{count_text(len(paths), 'file')}, nothing to change", err=True)
    return EXIT_SOURCE if EXIT_SOURCE in codes else max(codes)


def _tell(formatted: Formatted, check: bool, diff: bool) -> None:
    """Do with a layout what was asked for."""
    if diff:
        click.echo("".join(_difference(formatted)), nl=False)
    elif check:
        if formatted.is_changed:
            click.echo(formatted.path)
    elif formatted.path == STDIN:
        sys.stdout.flush()
        sys.stdout.buffer.write(formatted.after.encode("utf-8"))
        sys.stdout.buffer.flush()
    elif formatted.is_changed:
        replace_file(formatted)
        click.echo(f"{formatted.path}: formatted", err=True)


def _difference(formatted: Formatted) -> list[str]:
    """The lines of a unified difference, ready for `patch -p0`."""
    name = formatted.path.replace(os.sep, "/")
    before, after = (text.splitlines(keepends=True) for text in (formatted.text, formatted.after))
    lines = unified_diff(before, after, name, name)
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
