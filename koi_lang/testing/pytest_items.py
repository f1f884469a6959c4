"""Tests in Koi as items of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from koi_lang.testing import blocks
from koi_lang.testing.cases import Broken, Case
from koi_lang.testing.pool import results

# Of `pytest.ini`.
TIMEOUT = "koi_timeout"


class KoiFile(pytest.File):
    """A file with `test` blocks."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its tests in order. Raises pytest.Collector.CollectError with Koi's message where it does not compile."""
        for case in blocks.collect(self.path.resolve(), False):
            if isinstance(case, Broken):
                raise self.CollectError(case.message)
            yield KoiItem.from_parent(self, name=case.name, case=case)


class KoiItem(pytest.Item):
    """One `test` block; it runs in a process of its own, which reaches nothing outside of this machine."""

    def __init__(self, *, case: Case, **given: Any) -> None:
        super().__init__(**given)
        self.case = case

    def runtest(self) -> None:
        """Run it. Raises KoiTestError when it fails."""
        limit_s = float(self.config.getini(TIMEOUT))
        with closing(results([self.case], jobs=1, timeout_s=limit_s)) as arriving:
            outcome = next(arriving).outcome
        for title, lines in (("stdout", outcome.printed), ("stderr", outcome.logged)):
            if lines:
                self.add_report_section("call", title, "\n".join(lines) + "\n")
        if not outcome.ok:
            raise KoiTestError(outcome.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Koi's report of a failure, with the lines of the program; pytest's for other errors."""
        if isinstance(excinfo.value, KoiTestError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test begins, in lines from 0, and its name."""
        return self.path, self.case.line - 1, self.name


class KoiTestError(Exception):
    """A test in Koi has failed."""
