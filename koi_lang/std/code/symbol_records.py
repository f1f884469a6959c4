"""The symbols of an outline: declared names, their places, and the parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_TEXT_CHARS = 160


@dataclass(frozen=True, slots=True)
class OutlineSymbol:
    """A name that a file declares.

    Attributes:
        kind: `function`, `class`, `heading` and the like, in the words of the language.
        line: where it is declared, from 1.
        end: the last line that belongs to it; 0 where that is not known.
        inside: the class or the like around it; empty where there is none.
        text: its declaration as one line.
    """

    name: str
    kind: str
    line: int
    text: str
    end: int = 0
    inside: str = ""

    def as_data(self) -> dict[str, Any]:
        """The form for models, without unknown fields."""
        text = " ".join(self.text[: 2 * MAX_TEXT_CHARS].split())
        text = text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"
        data: dict[str, Any] = {"name": self.name, "kind": self.kind, "line": self.line}
        data |= {"end": self.end} if self.end else {}
        data |= {"inside": self.inside} if self.inside else {}
        return data | {"text": text}

    def is_called(self, name: str, inside: str) -> bool:
        """Whether it has a name, and stands in something of another name if that is not empty."""
        return self.name == name and (not inside or self.inside.rpartition(".")[2] == inside.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class FoundSymbols:
    """The names of a file.

    Attributes:
        method: `ast` for Python's own syntax tree, `parser` for that of Koi, `patterns` for lines that look like one.
    """

    method: str
    symbols: list[OutlineSymbol]
