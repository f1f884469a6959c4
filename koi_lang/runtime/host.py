"""The host of a run: a place to print and a person to ask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from koi_lang.errors import KoiError, PermissionDeniedError
from koi_lang.js.environment import OutputPort, StandardOutput

Approval = Literal["yes", "always", "no"]
# They count as letters and signs and look like nothing.
BLANK = "\u115f\u1160\u2800\u3164\uffa0"
# How line breaks and tabs are shown: a shell takes `\\n` within a word for a letter, and a line break for its end.
SIGNS = {"\n": "⏎", "\t": "⇥"}
# Of a text that is told in part.
MAX_CLIPPED_CHARS = 200
# Enough blanks push what stands before them out of sight.
GAP = re.compile(" {16,}")


class NobodyToAskError(KoiError, code="E0504"):
    """A person's answer was needed and nobody can be asked."""


class NobodyAllowsError(PermissionDeniedError):
    """A permission was needed and nobody can be asked for it; the help says how to give it beforehand."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A request for the permission of the person.

    Attributes:
        what: a clause that follows on "wants to".
        detail: why, or with what.
        agent: its name; empty where the program as a whole asks.
        preview: what would change, as lines of a unified diff; empty where that is not known.
        always: what is allowed from now on by `always`, in words; empty where every time is asked about.
        chain: the handlers around the one that asks, the outermost first, such as `Lead.plan`.
        id: names the request, so that two that are open at a time are not mixed up.
    """

    what: str
    detail: str = ""
    agent: str = ""
    preview: str = ""
    always: str = ""
    chain: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """The answer of the person to a request.

    Attributes:
        reason: why not, in their words; a model is told.
    """

    answer: Approval
    reason: str = ""


@runtime_checkable
class FormHost(Protocol):
    """A host that can show a whole form; others are asked one field after the other."""

    async def fill(self, question: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answers by field of a JSON Schema; None when the person declines. Raises NobodyToAskError."""


class Host(OutputPort, Protocol):
    """The person and the terminal, or a stand-in for them."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the person; with options, the answer is one of them or free text. Raises NobodyToAskError."""

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """The answer of the person to a request. Raises NobodyToAskError, or says `no` for it."""

    async def secret(self, name: str) -> str:
        """A value that must not be shown while typed. Raises NobodyToAskError."""


def choose_option(answer: str, options: Sequence[str]) -> str:
    """The option of an answer: by its number, or by its text in any letter case; anything else is free text."""
    if answer.isdigit() and 1 <= int(answer) <= len(options):
        return options[int(answer) - 1]
    return next((option for option in options if option.casefold() == answer.casefold()), answer)


def visible(text: str) -> str:
    """A text whose control characters and gaps cannot hide or overwrite the subject of a question."""
    shown = "".join(c if c.isprintable() and c not in BLANK else _spelt(c) for c in text)
    return GAP.sub(lambda gap: f"[{len(gap[0])} blanks]", shown)


def clip_text(text: str, most: int = MAX_CLIPPED_CHARS) -> str:
    """A text, or its beginning with a mark that it goes on; at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def wish(what: str, agent: str) -> str:
    """A request for permission as a sentence: the agent and its action."""
    return f"`{visible(agent)}` wants to {what}" if agent else f"the program wants to {what}"


def _spelt(character: str) -> str:
    if character in SIGNS:  # which cannot be taken for a backslash and a letter of the text itself
        return SIGNS[character]
    if "\udc80" <= character <= "\udcff":  # a byte of a path that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


class SilentHost(StandardOutput):
    """A host with output and no person: questions cannot be answered, approvals are denied."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Refuse: there is nobody."""
        raise NobodyToAskError(
            f"nobody can answer: {question}", help="Run the program in a terminal or pipe the answers in."
        )

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked for permission to {request.what}")

    async def secret(self, name: str) -> str:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked for `{name}`")
