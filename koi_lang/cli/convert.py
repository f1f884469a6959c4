"""`koi from`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_file
from koi_lang.compiler.formatter import format_source
from koi_lang.errors import UsageError, reason
from koi_lang.program.files import script_program
from koi_lang.source import PROGRAM_SUFFIX, SCRIPT_SUFFIXES, decode


@click.command()
@click.argument("script", type=click.Path(path_type=Path), shell_complete=complete_file)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the program to this file, which is new.",
)
def command(script: Path, output: Path | None) -> None:
    """Print a workflow SCRIPT in JavaScript as a program of Koi with the same calls."""
    if script.suffix not in SCRIPT_SUFFIXES:
        endings = " or ".join(f"`{ending}`" for ending in SCRIPT_SUFFIXES)
        raise UsageError(f"`{script}` is no workflow script", help=f"Its name ends in {endings}.")
    name = "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", script.stem)) or "Script"
    name = name if name[0].isalpha() else f"Script{name}"
    try:
        program = format_source(decode(script_program(script.read_bytes(), name, is_read=True), str(script)))
        if output is None:
            click.echo(program, nl=False)
            return
        if output.suffix != PROGRAM_SUFFIX:
            raise UsageError(f"`{output}` does not end in `{PROGRAM_SUFFIX}`", help=f"Write `-o {script.stem}.koi`.")
        with output.open("x", encoding="utf-8") as written:
            written.write(program)
    except FileExistsError as error:
        raise UsageError(f"`{output}` exists already", help="Name another file, or remove this one.") from error
    except OSError as error:
        raise UsageError(f"`{error.filename}` cannot be read or written: {reason(error)}") from error
