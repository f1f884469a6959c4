"""A pytest plugin: the CPU time of each test, a ceiling for the usual ones, and totals by folder at the end."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from operator import add
from typing import Any

import pytest

from tests import forks

# An unmarked test that takes more is named: the dearest 5 % of the tests used to take three quarters of the time.
MAX_CPU_S = 2.0
# Machines that others use, too, take up to 1.6 times as long for the same work; one that takes more than that fails.
NOISE = 1.6
# A test that imports more modules pays for those behind it in the same process, and is not held to the ceiling.
MAX_IMPORTS = 50
# Marks of tests that have commands of their own, and with them no ceiling.
MARKS = ("thorough", "counterpart")
COST = "cpu_s"
DEAR = "over the ceiling"
# CPU seconds of `_count` where the ceiling was set: a busy core or a slower one takes more for the same work.
REFERENCE_S = 0.018
# Processes that want to run, for each core, with the suite alone; among more of them the same work takes more.
REFERENCE_LOAD = 2.0
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def cpu_s() -> float:
    """CPU seconds of this process, of its children that have ended, and of commands that were forked for it."""
    return sum(os.times()[:4]) + sum(forked_s()[2:])


def forked_s() -> tuple[float, float, float, float]:
    """What `os.times` begins with, for the processes that fork; zeros where systems do not tell."""
    ticks = [0, 0, 0, 0]
    for process in forks.forking_processes():
        with suppress(OSError):
            counts = os.pread(_stat_of(process), 1024, 0).rpartition(b")")[2].split()[11:15]
            ticks = [*map(add, ticks, map(int, counts))]
    user, system, children_user, children_system = (count / TICKS for count in ticks)
    return (user, system, children_user, children_system)


@cache
def _stat_of(process: int) -> int:
    """The open file with what Linux counts of a process: it is read several times with each test."""
    return os.open(f"/proc/{process}/stat", os.O_RDONLY)


def _count() -> float:
    """CPU seconds that work of a fixed size takes now."""
    began_s = time.process_time()
    counted = {}
    for number in range(200_000):
        counted[str(number % 1000)] = [number]
    return time.process_time() - began_s


class CpuCosts:
    """Measures in the process that runs a test, and adds up in the one that reports.

    Args:
        ceiling_s: most CPU seconds of an unmarked test, named in the summary, and from `NOISE` of it on a failure; 0
            for no ceiling.
    """

    def __init__(self, ceiling_s: float) -> None:
        self.ceiling_s = ceiling_s
        self.by_folder: Counter[str] = Counter()
        self.dear: list[str] = []
        self.of_workers_s = 0.0
        self._began_s, self._shared_s, self._modules, self._is_last = 0.0, 0.0, 0, False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        """Begin to measure a test."""
        self._began_s, self._shared_s, self._modules = cpu_s(), 0.0, len(sys.modules)
        self._is_last = nextitem is None or nextitem.path != item.path
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        """What several tests have shared is not the cost of the last of them either."""
        if not self._is_last:
            return (yield)
        began_s = cpu_s()
        try:
            return (yield)
        finally:
            self._shared_s += cpu_s() - began_s

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """What several tests share is not the cost of the one that happens to come first."""
        if fixturedef.scope == "function":
            return (yield)
        began_s = cpu_s()
        try:
            return (yield)
        finally:
            self._shared_s += cpu_s() - began_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the cost of a test with its last report, and fail it where that is far over the ceiling."""
        if call.when != "teardown":
            return (yield)
        spent_s = cpu_s() - self._began_s - self._shared_s
        if spent_s > self.ceiling_s > 0:
            spent_s /= max(1.0, _count() / REFERENCE_S, os.getloadavg()[0] / (REFERENCE_LOAD * (os.cpu_count() or 1)))
        item.user_properties.append((COST, round(spent_s, 2)))
        report = yield
        if report.passed and self._is_over(item, spent_s):
            message = (
                f"{item.nodeid} took {spent_s:.2g} s of CPU, and {self.ceiling_s:g} s is the most: "
                "make it cheaper, or mark it `thorough` beside a smaller one"
            )
            report.user_properties.append((DEAR, message))
            if spent_s > NOISE * self.ceiling_s:
                report.outcome, report.longrepr = "failed", message
        return report

    def _is_over(self, item: pytest.Item, spent_s: float) -> bool:
        imported = len(sys.modules) - self._modules
        is_marked = any(item.get_closest_marker(name) for name in MARKS)
        return 0 < self.ceiling_s < spent_s and not is_marked and imported <= MAX_IMPORTS

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a cost to that of its folder."""
        if report.when == "teardown":
            folders = report.nodeid.partition("::")[0].split("/")[1:-1]
            properties = dict(report.user_properties)
            self.by_folder["/".join(folders[:1]) or "tests"] += properties.get(COST, 0)
            self.dear += [properties[DEAR]] if DEAR in properties else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has taken in all, also for collecting."""
        self.of_workers_s += getattr(node, "workeroutput", {}).get(COST, 0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Have a worker tell what it has taken."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[COST] = sum(os.times()[:4]) + sum(forked_s())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what the folders have cost, the dearest first."""
        of_tests_s = sum(self.by_folder.values())
        own_s = sum(os.times()[:2]) + sum(forked_s()[:2])
        all_s = own_s + (self.of_workers_s or of_tests_s)
        for message in self.dear:
            terminalreporter.write_line(message)
        if self.by_folder:
            folders = ", ".join(f"{name} {cost:.0f}" for name, cost in self.by_folder.most_common() if cost >= 0.5)
            terminalreporter.write_line(f"CPU: {all_s:.0f} s, of these tests {of_tests_s:.0f} s ({folders})")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cpu-ceiling` for machines that are slower than others."""
    parser.addoption(
        "--cpu-ceiling", type=float, default=MAX_CPU_S, help="most CPU seconds of an unmarked test; 0 for no ceiling"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure."""
    config.pluginmanager.register(CpuCosts(config.getoption("--cpu-ceiling")), "cpu_costs")
