"""The help of every command."""

from __future__ import annotations

import click
import pytest

from koi_lang.cli import koi
from koi_lang.cli.command_table import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name: str) -> None:
    """It can be shown, for the commands below it, too, and names the command and its options."""
    context = click.Context(koi, info_name="koi")
    command = koi.get_command(context, name)
    assert command is not None
    below = command.commands if isinstance(command, click.Group) else {}
    for words, each in {(name,): command, **{(name, one): found for one, found in below.items()}}.items():
        told = each.get_help(click.Context(each, info_name=" ".join(words), parent=context))

        assert told.startswith(f"Usage: koi {' '.join(words)} ")
        assert "--help" in told
