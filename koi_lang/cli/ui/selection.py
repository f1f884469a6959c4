"""A list of things to the one that a person picks with the arrow keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from prompt_toolkit.application import create_app_session
from prompt_toolkit.output import create_output
from prompt_toolkit.shortcuts import choice

from koi_lang.errors import UsageError


def pick_one(question: str, options: Sequence[tuple[str, str]], *, otherwise: str) -> str:
    """The value of the option that is picked; drawn on stderr.

    Args:
        options: values with what is shown for them; at least one.
        otherwise: what to write where there is no terminal, for the help.

    Raises:
        UsageError: there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to pick something on", help=otherwise)
    with create_app_session(output=create_output(stdout=sys.stderr)):
        return choice(question, options=options)
