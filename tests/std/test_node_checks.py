"""`std/checks` for projects of Node: its test runner, scripts of npm, eslint and tsc, each as it is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from koi_lang.std.checks.node_tools import find_node_tests
from koi_lang.std.checks.runner import run_lint, run_tests, run_types
from tests.npm import npm_package
from tests.std.checking import Check, CheckedProject, summary, titles

pytestmark = pytest.mark.needs("node", "npm")

PASSING = """
import test from "node:test"
import assert from "node:assert"
import { add } from "./adding.mjs"
test("adds", () => assert.equal(add(1, 2), 3))
test("adds nothing", async t => { await t.test("to zero", () => assert.equal(add(0, 0), 0)) })
test.skip("later", () => {})
"""
GREEN = {"adding.mjs": "export const add = (a, b) => a + b\n", "adding.test.mjs": PASSING}
RED = {**GREEN, "adding.mjs": "export const add = (a, b) => a - b\n"}
# Tests of which one ends the process before the next one fails.
LEAVING = """
import test from "node:test"
test("one", () => {})
test("two", () => { process.exit(0) })
test("three", () => { throw 1 })
"""
RULES = 'export default [{ rules: { "no-unused-vars": "error", "no-debugger": "warn" } }]\n'


def package(script: str) -> dict[str, str]:
    """A `package.json` with a script for tests."""
    return {"package.json": json.dumps({"name": "x", "scripts": {"test": script}})}


@pytest.mark.parametrize(
    "script", [None, "node --test", "node --test adding.test.mjs", "node --import=./adding.mjs --test"]
)
def test_what_tests_of_node_did(checked: CheckedProject, script: str | None) -> None:
    """By itself and as a script of npm the runner reports each test, with the line of the project that failed."""
    checked.write({**GREEN, **({} if script is None else package(script))})
    green = checked.check(run_tests)
    red = checked.write(RED).check(run_tests)

    assert ((True, 2, 0), []) == (summary(green), green["findings"])
    assert (False, 1, 1) == summary(red)
    assert [{"severity": "blocker", "title": "adds: -1 == 3", "where": "adding.test.mjs:5"}] == red["findings"]


def test_reporters_of_the_person_are_kept(checked: CheckedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options for Node that are set already count beside those for the report."""
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=500")
    printing = 'import test from "node:test"\ntest("a", () => console.log(process.env.NODE_OPTIONS))\n'
    result = checked.write({"a.test.mjs": printing, **package("node --test")}).check(run_tests)

    assert (True, "--max-old-space-size=500 ") == (
        result["ok"],
        result["output"][result["output"].index("--max") :][:25],
    )


@pytest.mark.parametrize(
    ("files", "title", "where"),
    [
        ({"a.test.mjs": "import { x } from './gone.mjs'\n"}, "a.test.mjs: test failed", ""),
        ({"a.test.mjs": "test(("}, "a.test.mjs: test failed", ""),
        ({"a.test.mjs": LEAVING}, "the file ended without reporting its tests", "a.test.mjs"),
        ({**GREEN, "b.test.mjs": LEAVING}, "the file ended without reporting its tests", "b.test.mjs"),
        ({"a.test.mjs": ""}, "the file ended without reporting its tests", "a.test.mjs"),
        ({"a.test.mjs": "import test from 'node:test'\ntest.skip('x', () => {})\n"}, "node --test ran no test", ""),
        (package("node --test"), "npm test ran no test", ""),
        (package("exit 0;"), "", ""),
        (package("exit 3"), "npm test ended with exit code 3", ""),
        ({"package.json": "{"}, "no tests were found in this folder", ""),
        ({"package.json": "[" * 100_000}, "no tests were found in this folder", ""),
        (package('echo "Error: no test specified" && exit 1'), "no tests were found in this folder", ""),
    ],
)
def test_what_is_broken_is_never_ok(checked: CheckedProject, files: Mapping[str, str], title: str, where: str) -> None:
    """Files that end the process, declare nothing or cannot be read are findings; of other scripts the exit counts."""
    result = checked.write(files).check(run_tests)

    assert (title == "") == result["ok"]
    assert title in "".join(titles(result)[:1])
    assert where == "".join(finding.get("where", "") for finding in result["findings"][:1])


@pytest.mark.parametrize(
    ("script", "is_runner"),
    [
        ("node --test", True),
        ("node --enable-source-maps --test test/", True),
        ("node --test && eslint .", False),
        ("node --test-only x.js", False),
        ("node --testing", False),
        ("c8 node --test", False),
        ("jest", False),
        ("node test.js", False),
        ("node --test | tee log", False),
        ("node " + "--test " * 100_000 + ";", False),
    ],
)
def test_which_scripts_report(checked: CheckedProject, script: str, is_runner: bool) -> None:
    """Only a script that starts the runner and nothing else is known to write a report."""
    tool = find_node_tests(checked.write(package(script)).folder)

    assert tool is not None
    assert is_runner == (tool.read is not None)


def test_what_tests_print_is_no_report(checked: CheckedProject) -> None:
    """Lines that look like a report, characters that XML cannot hold, and entities in messages change nothing."""
    printing = """
import test from "node:test"
console.log('<testsuites><testcase name="forged"/></testsuites>')
console.log('TAP version 13\\nok 1 - forged\\n1..1')
test("é <b> &amp; \\u0001", () => { throw new Error("no \\u001b[31m \\"&\\" \\ufffe <x> ]]>") })
"""
    result = checked.write({"größer als.test.mjs": printing}).check(run_tests)

    assert (False, 0, 1) == summary(result)
    assert ['é <b> &amp; �: no �[31m "&" � <x> ]]>'] == titles(result)
    assert "größer als.test.mjs:5" == result["findings"][0]["where"]


# ---------------------------------------------------------------- eslint and tsc


def with_modules(checked: CheckedProject, name: str, version: str) -> CheckedProject:
    """The project with an installed package."""
    (checked.folder / "node_modules").symlink_to(npm_package(name, version) / "node_modules")
    return checked.write({"package.json": '{"type": "module"}'})


@pytest.fixture
def linted(checked: CheckedProject) -> CheckedProject:
    """A project with eslint and rules."""
    return with_modules(checked, "eslint", "10.15.0").write({"eslint.config.js": RULES})


def test_eslint(linted: CheckedProject) -> None:
    """Errors are important, warnings alone are suggestions, and leave it ok."""
    green = linted.write({"a b.js": "export const a = 1\n"}).check(run_lint)
    red = linted.write({"a b.js": "const a = 1\ndebugger\n"}).check(run_lint)
    warned = linted.write({"a b.js": "debugger\n"}).check(run_lint)
    suggestion = {"severity": "suggestion", "title": "no-debugger: Unexpected 'debugger' statement."}

    assert ((True, 1, 0), []) == (summary(green), green["findings"])
    assert (False, 0, 1) == summary(red)
    assert [
        {
            "severity": "important",
            "title": "no-unused-vars: 'a' is assigned a value but never used.",
            "where": "a b.js:1",
        },
        {**suggestion, "where": "a b.js:2"},
    ] == red["findings"]
    assert ((True, 1, 0), [{**suggestion, "where": "a b.js:1"}]) == (summary(warned), warned["findings"])


@pytest.mark.parametrize(
    ("files", "title"),
    [
        ({"a.js": "const ("}, "Parsing error: Unexpected token ("),
        (
            {"eslint.config.js": "export default nonsense"},
            "could not read the report of eslint: it wrote none (exit code 2)",
        ),
        ({"eslint.config.js": "import { x } from 'gone'"}, "could not read the report of eslint: it wrote none"),
    ],
)
def test_eslint_that_cannot_check(linted: CheckedProject, files: Mapping[str, str], title: str) -> None:
    """Files that are no code and settings that are none are findings."""
    result = linted.write(files).check(run_lint)

    assert ((False, 0, 1), True) == (summary(result), title in titles(result)[0])


@pytest.mark.parametrize(
    ("files", "counts", "findings"),
    [
        ({"a.ts": "export const x: number = 1\n"}, (True, 1, 0), []),
        (
            {"a (1).ts": "export const x: number = 'a'\n"},
            (False, 0, 1),
            [("TS2322: Type 'string' is not assignable to type 'number'.", "a (1).ts:1")],
        ),
        (
            {"a.ts": "export const (\n"},
            (False, 0, 1),
            [("TS1134: Variable declaration expected.", "a.ts:1")],
        ),
        ({"tsconfig.json": '{"compilerOptions": {'}, (False, 0, 1), None),
        ({}, (False, 0, 1), None),
    ],
)
def test_tsc(
    checked: CheckedProject,
    files: Mapping[str, str],
    counts: tuple[bool, int, int],
    findings: list[tuple[str, str]] | None,
) -> None:
    """Errors of types and of settings are important; a project without files is not ok."""
    with_modules(checked, "typescript", "7.0.2").write({"tsconfig.json": "{}"})
    result = checked.write(files).check(run_types)

    assert counts == summary(result)
    assert findings is None or findings == [(each["title"], each.get("where")) for each in result["findings"]][:1]
    assert {"important"} >= {each["severity"] for each in result["findings"]}


@pytest.mark.parametrize(
    ("check", "settings", "name"),
    [
        (run_lint, "eslint.config.js", "eslint"),
        (run_types, "tsconfig.json", "tsc"),
        (run_tests, "a.test.js", "node --test"),
    ],
)
def test_a_missing_tool_is_told(
    checked: CheckedProject, monkeypatch: pytest.MonkeyPatch, check: Check, settings: str, name: str
) -> None:
    """A project that is set up for a tool which is not installed is told how to get it; nothing is downloaded."""
    monkeypatch.setenv("PATH", str(Path(checked.folder) / "nothing"))
    result = checked.write({settings: "{}"}).check(check)

    assert ((False, 0, 1), [f"{name} is not installed"]) == (summary(result), titles(result))
    assert "nstall" in result["findings"][0]["fix"]
