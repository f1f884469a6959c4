"""`--color`, wherever it stands on the command line, to what it says about colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

WHEN = ("auto", "always", "never")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Colours:
    """What the command line says about colours; of several words the last one counts."""

    when: str = "auto"


def _note(context: click.Context, _: click.Parameter, when: str | None) -> None:
    chosen = context.ensure_object(Colours)
    chosen.when = when or chosen.when


# How the option `--color` is declared.
COLOUR: Any = {
    "type": click.Choice(WHEN),
    "metavar": "WHEN",
    "expose_value": False,
    "is_eager": True,
    "callback": _note,
    "help": "Use colours: auto (at a terminal), always or never.",
}


def colour_option(command: Command) -> Command:
    """The option `--color`; a command need not take its value."""
    return click.option("--color", **COLOUR)(command)


def with_colour_option(command: click.Command) -> click.Command:
    """A command that has the option `--color`, as all commands within it have: any of them may report an error."""
    if all("--color" not in param.opts for param in command.params):
        command.params.append(click.Option(["--color"], **COLOUR))
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        with_colour_option(inner)
    return command


def chosen_colours() -> str:
    """What the command line that is being carried out says: `auto`, `always` or `never`."""
    context = click.get_current_context(silent=True)
    chosen = context.find_object(Colours) if context is not None else None
    return chosen.when if chosen is not None else "auto"


def command_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line from its command on: `--color` before it says nothing about what is done."""
    if not words or not words[0].startswith("--color"):
        return tuple(words)
    return command_words(words[1 if "=" in words[0] else 2 :])
