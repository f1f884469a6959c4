"""What the runtime asks of the world above it: a place to print and a person to ask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from koi_lang.errors import KoiError, PermissionDeniedError
from koi_lang.js.environment import OutputPort, StandardOutput

Approval = Literal["yes", "always", "no"]
# They count as letters and signs and look like nothing.
BLANK = "\u115f\u1160\u2800\u3164\uffa0"
# Enough blanks push what stands before them out of sight.
GAP = re.compile(" {16,}")


class NobodyToAskError(KoiError):
    """A person's answer was needed and nobody can be asked."""


class NobodyAllowsError(PermissionDeniedError):
    """A permission was needed and nobody can be asked for it; the help says how to give it beforehand."""


@runtime_checkable
class FormHost(Protocol):
    """A host that can show a whole form; others are asked one field after the other."""

    async def fill(self, question: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answers by field of a JSON Schema; None when the person declines. Raises NobodyToAskError."""


class Host(OutputPort, Protocol):
    """The person and the terminal, or whatever stands in for them."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the person; with options, the answer is one of them or free text. Raises NobodyToAskError."""

    async def approve(self, what: str, detail: str, agent: str) -> Approval:
        """Whether the person allows an agent something, once or always. Raises NobodyToAskError, or says `no` for it.

        Args:
            what: a clause that follows on "wants to".
            detail: why, or with what.
            agent: its name; empty where the program as a whole asks.
        """

    async def secret(self, name: str) -> str:
        """A value that must not be shown while typed. Raises NobodyToAskError."""


def choose_option(answer: str, options: Sequence[str]) -> str:
    """The option an answer means: by number, or the first one for an empty answer; anything else is free text."""
    if not options:
        return answer
    if not answer:
        return options[0]
    if answer.isdigit() and 1 <= int(answer) <= len(options):
        return options[int(answer) - 1]
    return answer


def visible(text: str) -> str:
    """A text in which no control character and no gap can hide or overwrite what a person is asked about."""
    shown = "".join(c if c.isprintable() and c not in BLANK else _spelt(c) for c in text)
    return GAP.sub(lambda gap: f"[{len(gap[0])} blanks]", shown)


def wish(what: str, agent: str) -> str:
    """A request for permission as a person reads it: who wants to do what."""
    return f"`{visible(agent)}` wants to {what}" if agent else f"the program wants to {what}"


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class SilentHost(StandardOutput):
    """A host with output and no person: questions cannot be answered, approvals are denied."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Refuse: there is nobody."""
        raise NobodyToAskError(
            f"nobody can answer: {question}", help="Run the program in a terminal or pipe the answers in."
        )

    async def approve(self, what: str, detail: str, agent: str) -> Approval:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked for permission to {what}")

    async def secret(self, name: str) -> str:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked for `{name}`")
