"""The tools of projects in Go and Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.std.checks.findings import CheckFinding, CheckReport, first_findings, name_place
from koi_lang.std.checks.go_report import read_go
from koi_lang.std.checks.json_reports import Problem, parse_json
from koi_lang.std.checks.tools import CheckTool, find_program


def find_go_tests(folder: Path) -> CheckTool | None:
    """The tool for the tests of all packages of a module."""
    if not (folder / "go.mod").is_file():
        return None
    return CheckTool(
        "go test",
        ("go", "test"),
        find_program(folder, "go"),
        "Install Go.",
        read_go,
        ("-json",),
        is_report_printed=True,
        counts_tests=True,
        suffixes=(".go",),
        takes_files=False,
        whole=("./...",),
    )


def find_cargo_tests(folder: Path) -> CheckTool | None:
    """The tool for all tests of a package, continued after a failure."""
    if not (folder / "Cargo.toml").is_file():
        return None
    return CheckTool(
        "cargo test",
        ("cargo", "test"),
        find_program(folder, "cargo"),
        "Install Rust, which brings `cargo`.",
        read_cargo,
        ("--no-fail-fast", "--message-format=json"),
        is_report_printed=True,
        counts_tests=True,
        suffixes=(".rs",),
        takes_files=False,
    )


MESSAGE = '{"reason":'
RUNNING = re.compile(r"running (\d{1,9}) tests?")
RESULT = re.compile(r"test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored; (\d{1,9}) measured; .*")
FAILED = re.compile(r"test (.+) \.\.\. FAILED")
SECTION = re.compile(r"---- (.+) stdout ----")
PANIC = re.compile(r".*panicked at (.+):(\d{1,9}):\d{1,9}:")


@dataclass(slots=True)
class RustFailure:
    """A failed test, with its message."""

    name: str
    file: str = ""
    line: str = ""
    why: str = ""


@dataclass(slots=True)
class RustBinary:
    """The output of one test binary.

    Attributes:
        tests: how many it was about to run.
        counts: of those that passed, failed, were ignored and measured, as it said last; before that empty.
        failures: those that failed, by their names.
    """

    tests: int
    counts: tuple[int, ...] = ()
    failures: dict[str, RustFailure] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it ended with a word about each of its tests."""
        return sum(self.counts) == self.tests and bool(self.counts)


def read_cargo(data: bytes, folder: Path) -> CheckReport:
    """The lines of a run. Raises UnreadableReportError."""
    lines = data.decode("utf-8", "replace").split("\n")
    messages = [parse_json(line.encode()) for line in lines if line.startswith(MESSAGE)]
    errors = list(dict.fromkeys(_errors(messages, folder)))
    people = [line for line in lines if not line.startswith(MESSAGE)]
    binaries = list(_binaries(people))
    failures = [failure for binary in binaries for failure in binary.failures.values()]
    broken = [binary for binary in binaries if not binary.is_whole]
    counts = [binary.counts for binary in binaries if binary.counts]
    findings = [
        *first_findings(errors, lambda error: error),
        *first_findings(failures, lambda failure: _finding(failure, folder)),
        *(CheckFinding("blocker", f"a program with {each.tests} tests ended before they did") for each in broken),
    ]
    passed, failed = (sum(each[index] for each in counts) for index in (0, 1))
    return CheckReport(passed, failed + len(broken) + len(errors), findings, "\n".join(people))


def _errors(messages: list[Problem], folder: Path) -> Iterator[CheckFinding]:
    for message in (each.get("message") for each in messages if each.get("reason") == "compiler-message"):
        if isinstance(message, dict) and message.get("level") == "error" and isinstance(message.get("message"), str):
            yield CheckFinding("blocker", message["message"], _place(message.get("spans"), folder))


def _place(spans: Any, folder: Path) -> str:
    """Where a message of the compiler is about; empty where it does not say."""
    known = spans if isinstance(spans, list) else []
    primary = [each for each in known if isinstance(each, dict) and each.get("is_primary")]
    return name_place(str(primary[0].get("file_name")), primary[0].get("line_start"), folder) if primary else ""


def _binaries(lines: list[str]) -> Iterator[RustBinary]:
    """The output of each binary; an imitated end line in a test is ignored until the real one."""
    binary: RustBinary | None = None
    failure: RustFailure | None = None
    for line in lines:
        if (running := RUNNING.fullmatch(line)) is not None:
            if binary is not None:
                yield binary
            binary, failure = RustBinary(int(running[1])), None
        elif binary is None:
            continue
        elif (result := RESULT.fullmatch(line)) is not None:
            binary.counts = tuple(map(int, result.groups()))
        elif (match := FAILED.fullmatch(line) or SECTION.fullmatch(line)) is not None:
            failure = binary.failures.setdefault(match[1], RustFailure(match[1]))
        elif failure is not None:
            _take_line(failure, line)
    if binary is not None:
        yield binary


def _take_line(failure: RustFailure, line: str) -> None:
    """The message of a failed test: its panic location, and the reason on the next line."""
    panic = PANIC.fullmatch(line)
    if panic is not None and not failure.file:
        failure.file, failure.line = panic[1], panic[2]
    elif failure.file and not failure.why:
        failure.why = line.strip()


def _finding(failure: RustFailure, folder: Path) -> CheckFinding:
    title = f"{failure.name}: {failure.why}" if failure.why else f"{failure.name} failed"
    return CheckFinding("blocker", title, name_place(failure.file, failure.line or None, folder))
