"""`koi types`."""

from __future__ import annotations

from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.compiler.codegen.types import declared_schemas
from koi_lang.diagnostics import CompileError
from koi_lang.errors import UsageError
from koi_lang.program import build
from koi_lang.program.host_types import pydantic_module, typescript_module


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.option("--pydantic", "language", flag_value="pydantic", help="As models of Pydantic, for Python.")
@click.option("--typescript", "language", flag_value="typescript", help="As types of TypeScript.")
def command(file: str, language: str | None) -> None:
    """Print the declared types of FILE, those that it imports included, for programs in another language.

    Nothing of the program is run.
    """
    if language is None:
        raise UsageError("`koi types` needs a language", help="Add `--pydantic` or `--typescript`.")
    checked = build.check(file)
    if checked.errors:
        raise CompileError(checked.errors)
    schemas = declared_schemas(checked.files[0].table)
    if not schemas:
        raise UsageError(f"`{file}` declares no types", help="Declare one at its top: `type Name = { … }`.")
    write = pydantic_module if language == "pydantic" else typescript_module
    click.echo(write(schemas, f"The types of `{Path(file).name}`, written by `koi types --{language}`."), nl=False)
