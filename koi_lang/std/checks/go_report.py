"""Findings from `go test -json`: an event a line, of tests, packages and builds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from koi_lang.std.checks.findings import CheckFinding, CheckReport, first_findings, name_place
from koi_lang.std.checks.json_reports import Problem, json_lines
from koi_lang.std.checks.project_files import read_setting

ENDS = ("pass", "fail", "skip")
# What a test or the compiler tells, with the file and the line it is about.
TOLD = re.compile(r"\s*([^\s:][^:]*\.go):(\d{1,9})(?::\d{1,9})?: (.*)")
MODULE = re.compile(r'^module\s+"?([^\s"]+)', re.M)
# Of what one test prints, in characters.
MAX_PRINTED = 20_000


@dataclass(slots=True)
class GoTest:
    """A test, or with an empty name a package.

    Attributes:
        ended: `pass`, `fail` or `skip`; empty while it runs.
        printed: the beginning of what it printed.
    """

    package: str
    name: str
    ended: str = ""
    printed: str = ""

    def first_place(self) -> re.Match[str] | None:
        """The first line of its output that names a place."""
        return next(filter(None, map(TOLD.fullmatch, self.printed.split("\n"))), None)


@dataclass(slots=True)
class GoEvents:
    """The results of a run's events.

    Attributes:
        tests: those with a name, and packages, by both names.
        build: what the compiler told against the project.
        output: what was printed for people.
    """

    tests: dict[tuple[str, str], GoTest] = field(default_factory=dict)
    build: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def add(self, event: Problem) -> None:
        """Take an event."""
        action, printed = event.get("Action"), event.get("Output")
        text = printed if isinstance(printed, str) else ""
        self.output.append(text)
        if action == "build-output":
            self.build.append(text.rstrip("\n"))
        if not isinstance(event.get("Package"), str):
            return
        key = (event["Package"], str(event.get("Test") or ""))
        test = self.tests.setdefault(key, GoTest(*key))
        test.printed += text[: MAX_PRINTED - len(test.printed)]
        if action in ENDS:
            test.ended = str(action)


def read_go(data: bytes, folder: Path) -> CheckReport:
    """The events of a run. Raises UnreadableReportError."""
    events = GoEvents()
    for event in json_lines(data):
        events.add(event)
    tests = [test for test in events.tests.values() if test.name]
    parents = {(test.package, parent) for test in tests for parent in _parents(test.name)}
    failed = list(_failures(events.tests))
    module = MODULE.search(read_setting(folder / "go.mod"))
    root = module[1] if module else ""
    built = [match for line in events.build if (match := TOLD.fullmatch(line)) is not None]
    findings = [
        *first_findings(built, lambda told: CheckFinding("blocker", told[3], name_place(told[1], told[2], folder))),
        *first_findings(failed, lambda test: _finding(test, root, folder)),
    ]
    passed = sum(test.ended == "pass" and (test.package, test.name) not in parents for test in tests)
    return CheckReport(passed, len(failed) or len(built), findings, "".join(events.output))


def _parents(name: str) -> Iterator[str]:
    """The tests that a test is part of."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _failures(tests: Mapping[tuple[str, str], GoTest]) -> Iterator[GoTest]:
    """The tests that failed or never ended, unless a part of them did, and packages of which no test says why."""
    failed = [test for test in tests.values() if test.name and test.ended not in ("pass", "skip")]
    explained = {(test.package, name) for test in failed for name in (*_parents(test.name), "")}
    yield from (test for test in failed if (test.package, test.name) not in explained)
    for (package, name), test in tests.items():
        if not name and test.ended == "fail" and (package, "") not in explained:
            yield test


def _finding(test: GoTest, module: str, folder: Path) -> CheckFinding:
    first, name = test.first_place(), test.name or test.package
    why = first[3] if first is not None else "failed" if test.ended else "did not end"
    place = "" if first is None else name_place(_path_of(test.package, first[1], module, folder), first[2], folder)
    return CheckFinding("blocker", f"{name}: {why}", place)


def _path_of(package: str, file: str, module: str, folder: Path) -> str:
    """A file as its package names it, from the folder of the project where it is there."""
    path = f"{package.removeprefix(module).lstrip('/')}/{file}".lstrip("/")
    return path if os.path.isfile(folder / path) else file
