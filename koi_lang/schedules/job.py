"""Jobs: runs that a service starts, their time or event, and their overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Trigger = Literal["every", "when"]
Missed = Literal["once", "never"]
Overlap = Literal["skip", "wait", "together"]

MISSED: tuple[Missed, ...] = ("once", "never")
OVERLAPS: tuple[Overlap, ...] = ("skip", "wait", "together")
# The options of either trigger, in the order in which they are told.
OPTIONS: Mapping[Trigger, tuple[str, ...]] = {
    "every": ("name", "missed", "overlap", "jitter"),
    "when": ("name", "overlap"),
}
MAX_JITTER_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Job:
    """A `run` with `every` or `when`.

    Attributes:
        agent: its name; `handler` is one of its events.
        payload: data of JSON; what an event brings is added to it.
        words: when it is due, or what event starts it.
        name: what tells it from the other jobs of its program.
        missed: whether what fell due while nothing ran is made up for, once for all of it.
        jitter_s: the most seconds by which a start is put off.
        line: where it stands in its file, from 1.
    """

    agent: str
    handler: str
    payload: Any
    trigger: Trigger
    words: str
    name: str
    missed: Missed = "once"
    overlap: Overlap | None = None
    jitter_s: float = 0.0
    line: int = field(default=0, compare=False)

    @property
    def when_busy(self) -> Overlap:
        """The policy for a start during the last run; by default events wait, and times do not."""
        return self.overlap or ("skip" if self.trigger == "every" else "wait")


class ScheduleError(ValueError):
    """Words that mean no time and no event.

    Attributes:
        help: one thing to do, a whole sentence.
        wrong: the piece of the words that was probably misspelt; empty where that is not known.
        meant: what was probably meant by it.
    """

    def __init__(self, message: str, help: str, wrong: str = "", meant: str | None = None) -> None:
        super().__init__(message)
        self.help = f"did you mean `{meant}`?" if meant else help
        self.wrong, self.meant = wrong, meant
