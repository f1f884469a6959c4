"""The findings of a check, each with a command that mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about the machine, the project or a provider.

    Attributes:
        about: what was looked at, one word.
        text: what was found, without a full stop; it never holds a key.
        fix: the command that mends it; empty where nothing is wrong, or no command can.
    """

    about: str
    level: Level
    text: str
    fix: str = ""

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)
