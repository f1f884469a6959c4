"""`koi list`: actions, the standard library, skills and extensions."""

from __future__ import annotations

import importlib

import click

from koi_lang.cli.command_table import CommandModules

TABLE = {
    "actions": "The actions that a playbook can use.",
    "std": "The standard library, or the page of one part.",
    "skills": "The skills in files that agents are offered.",
    "extensions": "The installed extensions and what each adds.",
}


@click.group(cls=CommandModules, find=lambda name: importlib.import_module(f"koi_lang.cli.list.{name}"), table=TABLE)
def command() -> None:
    """List what programs can use here: actions, the standard library, skills in files, and extensions."""
