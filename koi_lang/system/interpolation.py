"""Texts with values in them; the author's parts and outside parts stay apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias


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


Part: TypeAlias = "str | Interpolation"


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
