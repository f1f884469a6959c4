"""`koi list extensions`."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from koi_lang.cli.command_table import COMMANDS
from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import inspecting_command
from koi_lang.errors import EXIT_FAILED, EXIT_OK, ExtensionError
from koi_lang.extensions.collecting import collect_extensions, run_extension
from koi_lang.extensions.finding import Extension, find_installed, of_program
from koi_lang.program import loader

ADDED = ("actions", "hooks", "providers", "commands", "rpc")


@click.command()
@click.argument("file", required=False, shell_complete=complete_program)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@inspecting_command
def command(file: str | None, as_json: bool) -> None:
    """List installed extensions, and those of FILE, with what each adds. Exit code 1 when one cannot be used."""
    found = [*find_installed(), *(of_program(loader.load(file)) if file else ())]
    described = [_describe(extension) for extension in found]
    if as_json:
        click.echo(json.dumps(described, indent=2))
    else:
        click.echo("\n\n".join(map(_format_extension, described)) or "no extensions are installed")
    is_broken = any("error" in each for each in described)
    if not is_broken:
        collect_extensions(found, COMMANDS)  # raises where two of them do not go together
    sys.exit(EXIT_FAILED if is_broken else EXIT_OK)


def _describe(extension: Extension) -> dict[str, Any]:
    about: dict[str, Any] = {"name": extension.name, "package": extension.package, "version": extension.version}
    try:
        koi = run_extension(extension)
    except ExtensionError as error:
        return {**about, "error": error.message}
    hooks = [f"{hook.kind} {hook.name}" for hook in koi.hooks]
    return {**about, **{what: list(getattr(koi, what)) for what in ADDED}, "hooks": hooks}


def _format_extension(described: dict[str, Any]) -> str:
    head = f"{described['name']}  ({described['package']}{' ' + described['version'] if described['version'] else ''})"
    if "error" in described:
        return f"{head}\n  error      {described['error']}"
    rows = [f"  {what:<10} {', '.join(described[what])}" for what in ADDED if described[what]]
    return "\n".join([head, *(rows or ["  adds nothing"])])
