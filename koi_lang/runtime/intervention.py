"""The decision of a person at a debugger about an action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Intervention:
    """A decision about an action that has not been carried out yet.

    Attributes:
        decision: to carry it out with other fields, not to carry it out, or to take a result instead.
        value: the fields, or the result.
    """

    decision: Literal["fields", "skip", "result"]
    value: Any = None
