"""Breakpoints of a person: lines with conditions, counts and messages."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.dap.lines import ProgramLines
from koi_lang.program.files import absolute

COUNT = re.compile(r"\s*(==|>=|<=|>|<|%)?\s*(\d+)\s*")
COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "": operator.eq,
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "%": lambda passed, wanted: wanted > 0 and passed % wanted == 0,
}


@dataclass(slots=True)
class Breakpoint:
    """A line at which a program stops.

    Attributes:
        condition: an expression of Koi that must hold; empty where it always stops.
        count: which of the times that it is reached: `3`, `>= 3`, `% 3`; empty for every time.
        message: is shown instead of stopping, with the values of what stands in `{…}`; empty to stop.
        passed: how often it was reached with its condition holding.
    """

    line: int
    condition: str = ""
    count: str = ""
    message: str = ""
    passed: int = 0

    def is_counted(self) -> bool:
        """Count that it is reached; whether that is a time to stop."""
        self.passed += 1
        found = COUNT.fullmatch(self.count)
        return found is None or COMPARED[found[1] or ""](self.passed, int(found[2]))


@dataclass(slots=True)
class Breakpoints:
    """All breakpoints of a person, by file and line."""

    lines: ProgramLines
    _by_file: dict[str, dict[int, list[Breakpoint]]] = field(default_factory=dict)

    def set(self, path: str, wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Have those of a file be these; gives where each of them is, as DAP's `Breakpoint`."""
        file = absolute(path)
        kept = self._by_file[file] = {}
        answers: list[dict[str, Any]] = []
        for each in wanted:
            spot = self.lines.spot(file, int(each["line"]))
            about = {"verified": spot.line is not None, "line": spot.line or each["line"]}
            answers.append({**about, **({"message": spot.note} if spot.note else {})})
            if spot.line is not None:
                kept.setdefault(spot.line, []).append(_breakpoint(spot.line, each))
        return answers

    def at(self, file: str, line: int) -> Sequence[Breakpoint]:
        """The breakpoints at a place."""
        return self._by_file.get(file, {}).get(line, ())


def _breakpoint(line: int, wanted: Mapping[str, Any]) -> Breakpoint:
    condition, count, message = (str(wanted.get(name) or "") for name in ("condition", "hitCondition", "logMessage"))
    return Breakpoint(line, condition, count, message)
