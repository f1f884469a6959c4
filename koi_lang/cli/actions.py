"""`koi actions`."""

from __future__ import annotations

import json

import click

from koi_lang.runtime.actions.builtin import all_actions
from koi_lang.runtime.actions.table import ActionKind


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print names, permissions and JSON Schemas as one JSON list.")
def command(as_json: bool) -> None:
    """List the actions a playbook can use, with the permission each needs."""
    if as_json:
        click.echo(json.dumps([kind.as_data() for kind in all_actions()], indent=2))
        return
    click.echo("\n\n".join(map(_described, all_actions())))


def _described(kind: ActionKind) -> str:
    needs = f"needs `{kind.needs}`" if kind.needs else "needs nothing"
    return f"{kind.signature}  [{needs}]\n    {kind.description}"
