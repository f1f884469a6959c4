"""Processes that tests are run in, when one of them dies where no test is to blame."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from koi_lang.testing.cases import Case, CaseOutcome
from koi_lang.testing.pool import _Pool


@dataclass(frozen=True, slots=True)
class Passing:
    """A case that passes."""

    name: str
    path: Path = Path("a.koi")

    def run(self) -> CaseOutcome:
        """Pass."""
        return CaseOutcome(True)


def test_a_process_that_dies_between_two_tests_is_replaced() -> None:
    """What kills an idle process costs no test, and does not end the run."""
    pool = _Pool(1, 10.0)
    waiting: Iterator[Case] = iter([Passing("one"), Passing("two")])
    pool.begin(waiting)
    (first,) = pool.wait_for_results()
    process = pool._workers[0].process
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    pool.begin(waiting)
    (second,) = pool.wait_for_results()
    pool.close()

    assert (first.outcome.ok, second.outcome.ok) == (True, True)
