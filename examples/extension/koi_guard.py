"""An extension of Koi: agents run only the shell commands that `guard.txt` in the folder of the run lists.

A line of that file is a command, or a pattern such as `ls *`. What joins or redirects commands is never let pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from koi_lang.extensions import ActionCall, Deny, Koi

LIST = "guard.txt"
JOINING = frozenset(";&|<>`$\\(){}\n\r")


def patterns() -> list[str]:
    """The lines of the list; without the file nothing is let pass."""
    path = Path(LIST)
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip()]


def is_listed(command: str, listed: Sequence[str]) -> bool:
    """Whether a command is let pass."""
    return JOINING.isdisjoint(command) and any(fnmatchcase(command, pattern) for pattern in listed)


def extend_koi(koi: Koi) -> None:
    """Add a hook, an action and a command to a run."""
    listed = patterns()
    koi.state["denied"] = 0

    @koi.before_action
    def only_listed(call: ActionCall) -> Deny | None:
        if call.intent != "shell" or is_listed(call.fields["command"], listed):
            return None
        koi.state["denied"] += 1
        return Deny(f"`{call.fields['command']}` is not in {LIST}; use `listed_commands` to see what is")

    @koi.action(needs="execute", safe=True)
    def listed_commands(context: Any) -> dict[str, Any]:
        """List the shell commands that are let pass, and how many were denied."""
        return {"commands": listed, "denied": koi.state["denied"]}

    koi.command(guard)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
def guard(words: tuple[str, ...]) -> None:
    """Say whether the shell command WORDS is let pass here."""
    command = " ".join(words)
    click.echo(f"{command}: {'let pass' if is_listed(command, patterns()) else 'denied'}")
