"""Texts with values in them; the author's parts and outside parts stay apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Interpolation:
    """A value that stands in a text.

    Attributes:
        text: how it is written there.
        name: what it is called: its path from the payload or the state, or the expression that gives it.
    """

    value: Any
    text: str
    name: str = ""


MAX_DEPTH = 6
# A text whose braces are closed, nested up to a depth.
CLOSED = reduce(lambda inner, _: rf"[^{{}}]*+(?:\{{{inner}\}}[^{{}}]*+)*+", range(MAX_DEPTH), "[^{}]*+")
# A quoted text, whose braces do not count; expressions are no longer than that.
QUOTED = "|".join(rf"{mark}(?:\\.|[^{mark}\\]){{0,2000}}+{mark}" for mark in "\"'`")
# The same with quoted texts in it, of which there are so many at most.
PIECES = rf"(?:[^{{}}\"'`]++|{QUOTED}){{0,200}}+"
CODE = reduce(lambda inner, _: rf"{PIECES}(?:\{{{inner}\}}{PIECES})*+", range(MAX_DEPTH), PIECES)
OPENING = 2  # the length of `${`, and of `{{`
# `${…}` and `{{…}}` in the texts of actions; the expression is the first or the second group.
HOLE = re.compile(
    rf"\$\{{(?=[^{{}}])({CODE}(?=\}})|{CLOSED})\}}|\{{\{{(?=[^{{}}])({CODE}(?=\}}\}})|{CLOSED})\}}\}}", re.DOTALL
)
# The names in expressions of actions that nobody has chosen: of a call, its loops and its last result.
IMPLICIT_NAMES = frozenset({"args", "state", "iteration", "iterationIndex", "previousResult", "lastResult"})
# Fields of actions whose texts a shell or an interpreter reads.
COMMANDS = frozenset({"command", "cmd", "code", "script"})
# Those with what goes into files and commands, as tools of servers and functions of skills call them.
USUAL_CODE = COMMANDS | frozenset(
    "content contents file_text before after old new old_string new_string old_str new_str diff patch".split()
)
Part: TypeAlias = "str | Interpolation"


class ExpressionRules(Enum):
    """How an expression in a text treats what is missing, and how much it may use.

    Attributes:
        LENIENT: what is missing is `undefined`, and so are its members; for conditions.
        STRICT: a member of what is missing is an error; for values in actions.
        EARLIER: as LENIENT, and what only later versions compute is an error; for answers in old journals.
    """

    LENIENT = "lenient"
    STRICT = "strict"
    EARLIER = "earlier"


class Evaluate(Protocol):
    """An evaluator of expressions that arrive while a program runs."""

    def __call__(self, text: str, names: Mapping[str, Any], rules: ExpressionRules = ExpressionRules.LENIENT, /) -> Any:
        """The value of an expression over some names. Raises ExpressionError."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text in parts: strings are as their author wrote them, interpolations came in."""

    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The whole text, values written out."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not any(part if isinstance(part, str) else part.text for part in self.parts)


def join_rendered(texts: Iterable[Rendered], separator: str) -> Rendered:
    """Texts as one, with the separator between those that are not empty."""
    parts: list[Part] = []
    for text in texts:
        if text.is_empty:
            continue
        if parts:
            parts.append(separator)
        parts += text.parts
    return Rendered(tuple(parts))
