"""The tools of projects for Node: its own test runner, the script of npm, eslint and tsc."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from koi_lang.settings import variable
from koi_lang.std.checks.findings import CheckFinding, CheckReport, first_findings, name_place
from koi_lang.std.checks.json_reports import read_eslint
from koi_lang.std.checks.junit import read_node_junit
from koi_lang.std.checks.project_files import has_name, has_setting, read_setting
from koi_lang.std.checks.tools import REPORT, CheckTool, find_own, find_program

BIN = ("node_modules/.bin",)
SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
# The names of files that `node --test` looks for; there are more, which are for scripts of npm.
TEST_NAME = re.compile(r"(?:.+[._-]test|test(?:-.+)?)\.(?:js|mjs|cjs)")
# A script that starts the test runner of Node and nothing else; a longer one is looked at by nobody.
MAX_SCRIPT_CHARS = 1000
RUNNER = re.compile(r"node\s(?:[^;&|<>]*\s)?--test(?:\s[^;&|<>]*)?")
# What `npm init` writes.
NO_SCRIPT = "no test specified"
ESLINT = re.compile(r"eslint\.config\.[mc]?[jt]s|\.eslintrc(?:\.(?:js|cjs|json|ya?ml))?")
NODE_ADVICE = "Install Node, which brings `node` and `npm`."
# Written to a file for the report, and to stdout for people.
REPORTERS = (
    "--test-reporter=junit", f"--test-reporter-destination={REPORT}",
    "--test-reporter=spec", "--test-reporter-destination=stdout",
)  # fmt: skip
# Has npm ask no server for news of itself.
QUIET = {"npm_config_update_notifier": "false"}


def find_node_tests(folder: Path) -> CheckTool | None:
    """The test tool: the script `test` of `package.json`, else `node --test` where there are files for it."""
    script = _scripts(folder).get("test")
    if isinstance(script, str) and script.strip() and NO_SCRIPT not in script:
        return _npm_test(folder, script.strip())
    if not has_name(folder, lambda name: TEST_NAME.fullmatch(name) is not None):
        return None
    program = find_program(folder, "node")
    return CheckTool(
        "node --test",
        ("node", "--test"),
        program,
        NODE_ADVICE,
        read_node_junit,
        REPORTERS,
        counts_tests=True,
        suffixes=SUFFIXES,
    )


def _npm_test(folder: Path, script: str) -> CheckTool:
    """The script of a project; only that of Node's own runner reports on single tests."""
    npm = find_program(folder, "npm")
    tool = CheckTool(
        "npm test", ("npm", "test"), npm, NODE_ADVICE, None, variables=QUIET, suffixes=SUFFIXES, takes_files=False
    )
    if len(script) > MAX_SCRIPT_CHARS or not RUNNER.fullmatch(script):
        return tool
    options = " ".join([variable("NODE_OPTIONS") or "", *(f'"{word}"' for word in REPORTERS)])
    return replace(tool, read=read_node_junit, variables={**QUIET, "NODE_OPTIONS": options}, counts_tests=True)


def find_eslint(folder: Path) -> CheckTool | None:
    """The linter, where the project has settings for it."""
    is_set_up = has_setting(folder, lambda name: ESLINT.fullmatch(name) is not None)
    if not is_set_up and "eslintConfig" not in _package(folder):
        return None
    eslint = find_own(folder, BIN, "eslint")
    return CheckTool(
        "eslint",
        (eslint,),
        find_program(folder, eslint),
        "Install what the project needs: `npm install`.",
        read_eslint,
        ("--format=json", f"--output-file={REPORT}"),
        suffixes=SUFFIXES,
        whole=(".",),
    )


def find_tsc(folder: Path) -> CheckTool | None:
    """The type checker, where the project has settings for it."""
    if not (folder / "tsconfig.json").is_file():
        return None
    tsc = find_own(folder, BIN, "tsc")
    return CheckTool(
        "tsc",
        (tsc, "--noEmit"),
        find_program(folder, tsc),
        "Install what the project needs: `npm install`.",
        read_tsc,
        ("--pretty", "false"),
        is_report_printed=True,
        suffixes=SUFFIXES,
        takes_files=False,
    )


def _scripts(folder: Path) -> dict[str, Any]:
    scripts = _package(folder).get("scripts")
    return scripts if isinstance(scripts, dict) else {}


def _package(folder: Path) -> dict[str, Any]:
    """The content of `package.json`; empty for an invalid one, which npm reports itself."""
    try:
        package = json.loads(read_setting(folder / "package.json"))
    except (ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


# `src/a.ts(3,5): error TS2322: …`, or without a place what concerns the project; what goes on is indented.
PROBLEM = re.compile(r"(?:(.+)\((\d{1,9}),\d{1,9}\): )?error (TS\d{1,9}: .*)")


def read_tsc(data: bytes, folder: Path) -> CheckReport:
    """The report of tsc's `--pretty false`; empty without errors."""
    lines = data.decode("utf-8", "replace").split("\n")
    problems = [match for line in lines if (match := PROBLEM.fullmatch(line.rstrip("\r"))) is not None]

    def finding(problem: re.Match[str]) -> CheckFinding:
        return CheckFinding("important", problem[3], name_place(problem[1] or "", problem[2], folder))

    return CheckReport(int(not problems), int(bool(problems)), first_findings(problems, finding))
