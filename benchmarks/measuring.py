"""Commands and coroutines to the CPU time they take, and measured values to figures with a target."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

CHECKOUT = Path(__file__).resolve().parent.parent
Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True)
class Figure:
    """One promise and what was measured for it.

    Attributes:
        name: what was measured.
        target: the most that `values` may be in the median, or the least with `at_least`.
        values: one a run, in `unit`.
        unit: `s`, `lines/s`, `×` for a ratio, `modules`.
    """

    name: str
    target: float
    values: Sequence[float]
    unit: str
    at_least: bool = False

    @property
    def median(self) -> float:
        """The value the target is compared with."""
        return statistics.median(self.values)

    @property
    def is_ok(self) -> bool:
        """Whether the promise is kept."""
        return self.median >= self.target if self.at_least else self.median <= self.target


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of CPU time, and seconds on the clock."""

    cpu_s: float
    wall_s: float


def repeat(times: int, measure: Callable[[], Measured]) -> list[Measured]:
    """Measure several times, after once for the files that a first run writes."""
    measure()
    return [measure() for _ in range(times)]


def python(*arguments: str) -> Cost:
    """What a Python process costs from its start to its end. Raises CalledProcessError when it fails."""
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment())
    after, end_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu_s, end_s - start_s)


def environment() -> dict[str, str]:
    """The environment of measured processes: they find this checkout and may keep compiled Python modules."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**ours, "PYTHONPATH": str(CHECKOUT)}
