"""Test cases, each with a name, and their outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from koi_lang.diagnostics import LabeledSpan
from koi_lang.errors import ExpectationError, innermost
from koi_lang.program import loader
from koi_lang.program.error_report import explain, innermost_place


@dataclass(frozen=True, slots=True)
class FailurePlace:
    """Where a case failed: the absolute path of a file, and a line of it, from 1."""

    path: Path
    line: int

    @classmethod
    def of(cls, place: LabeledSpan) -> FailurePlace:
        """The beginning of a piece of source."""
        return cls(Path(place.source.path).absolute(), place.source.position(place.span.start).line)


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case.

    Attributes:
        message: what a person is told of a failure; empty when the case passed.
        printed: the lines that the program printed.
        logged: the lines that it told its person beside that.
        at: where it failed, as far as that is a place in a source.
        orders: in how many orders it ran; 0 where that was not asked for.
    """

    ok: bool
    seconds: float = 0.0
    message: str = ""
    printed: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    at: FailurePlace | None = None
    orders: int = 0


class Case(Protocol):
    """One thing to test: a `test` block, a recorded run, a file that does not compile. It is sent to other processes.

    Attributes:
        name: unique within its file; empty for the file as a whole.
        path: the file, absolute.
        line: where it begins in the file, from 1.
    """

    @property
    def name(self) -> str:
        """The name of the case."""

    @property
    def path(self) -> Path:
        """The file of the case."""

    @property
    def line(self) -> int:
        """The line where the case begins, counted from 1."""

    def run(self) -> CaseOutcome:
        """Run it. Errors become part of the outcome."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case with its outcome."""

    case: Case
    outcome: CaseOutcome


# The cases in a file; the flag says that what recorded runs expect is to be written anew.
Collect = Callable[[Path, bool], Sequence[Case]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that cannot be read as tests."""

    path: Path
    message: str
    name: str = ""
    line: int = 1
    at: FailurePlace | None = None

    def run(self) -> CaseOutcome:
        """A failure."""
        return CaseOutcome(False, message=self.message, at=self.at)


def title(case: Case) -> str:
    """How a person finds a case: its file, seen from the current folder, and its name."""
    name = " ".join(case.name.split())
    return f"{relative_path(case.path)}: {name}" if name else relative_path(case.path)


def relative_path(path: Path) -> str:
    """A path as seen from the current folder."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()


def failed_outcome(error: BaseException, outcome: CaseOutcome = CaseOutcome(False)) -> CaseOutcome:
    """The outcome of a case that an error has ended; the rest is as in another outcome."""
    lines = [explain(error, Path.cwd().as_posix())]
    first = innermost(error)
    if isinstance(first, ExpectationError):
        lines += [f"  {line}" for detail in first.details for line in detail.split("\n")]
    place = innermost_place(error)
    return replace(outcome, ok=False, message="\n".join(lines), at=None if place is None else FailurePlace.of(place))


@dataclass(slots=True)
class CaseAttempt:
    """An attempt at a case.

    Attributes:
        begin: when it was begun, in seconds.
        error: what ended it; None where nothing has.
    """

    begin: float = field(default_factory=time.perf_counter)
    error: BaseException | None = None

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.perf_counter() - self.begin

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A context in which programs are loaded for this case; an error, or an exit of the program, ends it."""
        loader.unload()
        try:
            yield
        except (Exception, SystemExit) as error:  # becomes part of the outcome
            self.error = error
        finally:
            loader.unload()
