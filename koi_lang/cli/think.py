"""`koi think`."""

from __future__ import annotations

import click

from koi_lang.cli import do

command = click.Command(
    "think",
    callback=lambda **given: do.carry_out({**given, "thinks": True}),
    params=[param for param in do.command.params if param.name != "thinks"],
    help=do.THINK_HELP,
)
