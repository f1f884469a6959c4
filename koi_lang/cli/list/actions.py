"""`koi list actions`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import inspecting_command, no_extensions_option
from koi_lang.extensions.collecting import collect_extensions
from koi_lang.extensions.finding import find_installed, of_program
from koi_lang.program import loader
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.runtime.actions.registered import ActionKind


@click.command()
@click.argument("file", required=False, shell_complete=complete_program)
@click.option("--json", "as_json", is_flag=True, help="Print names, permissions and JSON Schemas as one JSON list.")
@no_extensions_option
@inspecting_command
def command(file: str | None, as_json: bool, no_extensions: bool) -> None:
    """List the actions a playbook can use, with the permission each needs; with FILE also those that it brings."""
    listed = [*((kind, "") for kind in all_actions()), *_extension_actions(file, use_installed=not no_extensions)]
    if as_json:
        click.echo(json.dumps([_data(kind, extension) for kind, extension in listed], indent=2))
        return
    click.echo("\n\n".join(_describe(kind, extension) for kind, extension in listed))


def _extension_actions(file: str | None, *, use_installed: bool) -> Iterator[tuple[ActionKind, str]]:
    """The actions of extensions, each with the name of its extension."""
    own = of_program(loader.load(file)) if file else []
    for extension, koi in collect_extensions([*(find_installed() if use_installed else ()), *own]).each:
        yield from ((kind, extension.name) for kind in koi.actions.values())


def _data(kind: ActionKind, extension: str) -> dict[str, Any]:
    return {**kind.as_data(), **({"extension": extension} if extension else {})}


def _describe(kind: ActionKind, extension: str) -> str:
    needs = f"needs `{kind.needs}`" if kind.needs else "needs nothing"
    origin = f", of the extension `{extension}`" if extension else ""
    return f"{kind.signature}  [{needs}{origin}]\n    {kind.description}"
