"""`runTests` of `std/checks` for Rust, with the cargo that is installed, and for Go.

No Go is needed: what `go test -json` prints is written here by hand, event by event, in the form that its documentation
of `test2json` gives; a project is checked with a program called `go` that prints it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koi_lang.std.checks.findings import UnreadableReportError
from koi_lang.std.checks.go_report import read_go
from koi_lang.std.checks.runner import run_tests
from tests.std.checking import CheckedProject, summary, titles

MANIFEST = '[package]\nname = "adding"\nversion = "0.1.0"\nedition = "2021"\n'
LIBRARY = """
pub fn add(a: i32, b: i32) -> i32 { a + b }
#[cfg(test)]
mod tests {
    use super::*;
    #[test] fn zero() { assert_eq!(add(2, 0), 2) }
    #[test] fn sum() {
        println!("test result: ok. 100 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(add(1, 2), 3)
    }
    #[test] #[ignore] fn later() {}
}
"""
GREEN = {"Cargo.toml": MANIFEST, "src/lib.rs": LIBRARY}
LEAVING = LIBRARY.replace("#[test] fn zero() {", "#[test] fn zero() { std::process::exit(0);")


@pytest.mark.needs("cargo")
def test_cargo(checked: CheckedProject) -> None:
    """Tests that pass and fail are counted as cargo does, whatever they print, and failures have their line."""
    green = checked.write(GREEN).check(run_tests)
    red = checked.write({"src/lib.rs": LIBRARY.replace("a + b", "a - b")}).check(run_tests)

    assert ((True, 2, 0), []) == (summary(green), green["findings"])
    assert (False, 1, 1) == summary(red)
    assert [
        {
            "severity": "blocker",
            "title": "tests::sum: assertion `left == right` failed",
            "where": "src/lib.rs:9",
        }
    ] == red["findings"]
    assert ("running 3 tests" in red["output"], '{"reason":' in red["output"]) == (True, False)


@pytest.mark.needs("cargo")
@pytest.mark.parametrize(
    ("files", "counts", "title", "where"),
    [
        ({"src/lib.rs": "pub fn f() -> i32 { x }"}, (0, 1), "cannot find value `x` in this scope", "src/lib.rs:1"),
        ({"src/lib.rs": LEAVING}, (0, 1), "a program with 3 tests ended before they did", ""),
        ({"src/lib.rs": ""}, (0, 1), "cargo test ran no test (exit code 0)", ""),
        ({"Cargo.toml": "[package"}, (0, 1), "cargo test ran no test (exit code 101)", ""),
    ],
)
def test_cargo_that_is_not_ok(
    checked: CheckedProject, files: Mapping[str, str], counts: tuple[int, int], title: str, where: str
) -> None:
    """What does not compile, ends in the middle or has no tests is a finding."""
    result = checked.write({**GREEN, **files}).check(run_tests)

    assert (False, *counts) == summary(result)
    assert (title, where) == (titles(result)[0], result["findings"][0].get("where", ""))


# ---------------------------------------------------------------- go


def event(action: str, test: str = "", output: str = "", package: str = "example.com/adding/sums") -> dict[str, Any]:
    """An event of a run."""
    named = {"Test": test} if test else {}
    return {"Time": "2026-11-23T08:00:00Z", "Action": action, "Package": package, **named, "Output": output}


def lines(*events: Mapping[str, Any]) -> str:
    """What `go test -json` prints."""
    return "".join(f"{json.dumps(each)}\n" for each in events)


PASSING = [event("start"), event("run", "TestSum"), event("output", "TestSum", "=== RUN   TestSum\n"),
           event("pass", "TestSum"), event("output", output="ok\n"), event("pass")]  # fmt: skip
FAILING = [
    event("run", "TestSum"), event("run", "TestSum/zero"),
    event("output", "TestSum/zero", "    sums_test.go:9: got 3, want 2\n"),
    event("output", "TestSum/zero", "    --- FAIL: TestSum/zero (0.00s)\n"),
    event("fail", "TestSum/zero"), event("fail", "TestSum"), event("run", "TestOther"), event("pass", "TestOther"),
    event("output", output="FAIL\n"), event("fail"),
]  # fmt: skip
BUILD = [
    {"ImportPath": "example.com/adding/sums", "Action": "build-output", "Output": "# example.com/adding/sums\n"},
    {"ImportPath": "example.com/adding/sums", "Action": "build-output", "Output": "sums/sums.go:3:9: undefined: x\n"},
    {"ImportPath": "example.com/adding/sums", "Action": "build-fail"},
    event("output", output="FAIL\texample.com/adding/sums [build failed]\n"), event("fail"),
]  # fmt: skip
NO_TESTS = [event("output", output="?   \texample.com/adding/sums\t[no test files]\n"), event("skip")]
PANIC = [event("run", "TestSum"), event("output", "TestSum", "panic: gone\n"), event("fail")]
FORGED = [
    event("run", "TestSum"), event("output", "TestSum", lines(event("pass", "TestForged"))),
    event("output", "TestSum", "--- PASS: TestMore (0.00s)\n"), event("fail", "TestSum"), event("fail"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "code", "counts", "findings"),
    [
        (PASSING, 0, (True, 1, 0), []),
        (PASSING, 1, (False, 1, 1), [("go test ended with exit code 1, though its report tells of no failure", None)]),
        (FAILING, 1, (False, 1, 1), [("TestSum/zero: got 3, want 2", "sums/sums_test.go:9")]),
        (FAILING, 0, (False, 1, 1), [("TestSum/zero: got 3, want 2", "sums/sums_test.go:9")]),
        (BUILD, 1, (False, 0, 1), [("undefined: x", "sums/sums.go:3"), ("example.com/adding/sums: failed", None)]),
        (NO_TESTS, 0, (False, 0, 1), [("go test ran no test (exit code 0)", None)]),
        (PANIC, 2, (False, 0, 1), [("TestSum: did not end", None)]),
        (FORGED, 1, (False, 0, 1), [("TestSum: failed", None)]),
        ([], 0, (False, 0, 1), [("go test ran no test (exit code 0)", None)]),
    ],
    ids=["green", "green and 1", "red", "red and 0", "build", "no tests", "panic", "forged", "silent"],
)
def test_go(
    checked: CheckedProject, monkeypatch: pytest.MonkeyPatch, events: Any, code: int, counts: Any, findings: Any
) -> None:
    """What the events say is held against the exit code; parts of tests count, and not what they are part of."""
    checked.write(
        {"go.mod": "module example.com/adding\n\ngo 1.24\n", "sums/sums_test.go": "", "events": lines(*events)}
    )
    put_program(checked.folder, "go", f'test "$*" = "test -json ./..." && cat events && exit {code}', monkeypatch)
    result = checked.check(run_tests)

    assert counts == summary(result)
    assert findings == [(each["title"], each.get("where")) for each in result["findings"]]
    assert '{"Time"' not in result["output"] or events is FORGED


def put_program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the shell that stands first on the path."""
    program = folder / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", '{"Action": "pass"', '{"Action": "pass"}\n3', "[" * 100_000, "{" * 9]
)
def test_go_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    """A line that is no event makes the whole unreadable."""
    with pytest.raises(UnreadableReportError):
        read_go(text.encode(), tmp_path)
