"""Reports in JSON to findings: those of ruff, eslint and mypy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from koi_lang.std.checks.findings import (
    CheckFinding,
    CheckReport,
    Severity,
    UnreadableReportError,
    first_findings,
    name_place,
)

Problem = dict[str, Any]


def read_ruff(data: bytes, folder: Path) -> CheckReport:
    """The report of ruff's `--output-format=json`. Raises UnreadableReportError."""

    def finding(problem: Problem) -> CheckFinding:
        code, fix = problem.get("code"), problem.get("fix")
        place = name_place(_text(problem, "filename"), _line(problem.get("location"), "row"), folder)
        advice = fix.get("message") if isinstance(fix, dict) else None
        severity: Severity = "suggestion" if problem.get("severity") == "warning" else "important"
        return CheckFinding(severity, _title(problem, code), place, advice if isinstance(advice, str) else "")

    return report_of(list(_objects(parse_json(data))), finding)


def read_eslint(data: bytes, folder: Path) -> CheckReport:
    """The report of eslint's `--format=json`. Raises UnreadableReportError."""
    problems: list[Problem] = []
    files = list(_objects(parse_json(data)))
    for file in files:
        path = _text(file, "filePath")
        problems += ({**message, "filePath": path} for message in _objects(file.get("messages")))

    def finding(problem: Problem) -> CheckFinding:
        severity: Severity = "suggestion" if problem.get("severity") == 1 else "important"
        place = name_place(problem["filePath"], _line(problem, "line"), folder)
        return CheckFinding(severity, _title(problem, problem.get("ruleId")), place)

    return report_of(problems, finding) if files else CheckReport()


def read_mypy(data: bytes, folder: Path) -> CheckReport:
    """The report of mypy's `--output=json`, an object a line; notes belong to the finding before them.

    Raises:
        UnreadableReportError: a line is no object.
    """
    problems = [problem for problem in json_lines(data) if problem.get("severity") != "note"]

    def finding(problem: Problem) -> CheckFinding:
        severity: Severity = "suggestion" if problem.get("severity") == "warning" else "important"
        place = name_place(_text(problem, "file"), _line(problem, "line"), folder)
        hint = problem.get("hint")
        return CheckFinding(
            severity, _title(problem, problem.get("code")), place, hint if isinstance(hint, str) else ""
        )

    lines = (f"{_text(each, 'file')}:{each.get('line')}: {_text(each, 'message')}\n" for each in problems)
    return replace(report_of(problems, finding), output="".join(lines))


# ---------------------------------------------------------------- any of them


def report_of(problems: Sequence[Problem], finding: Callable[[Problem], CheckFinding]) -> CheckReport:
    """A report of a tool that has no tests: it fails where anything is worse than a suggestion."""
    findings = [finding(problem) for problem in problems]
    failed = any(each.severity != "suggestion" for each in findings)
    worst_first = sorted(findings, key=lambda each: each.severity == "suggestion")
    return CheckReport(int(not failed), int(failed), first_findings(worst_first, lambda each: each))


def parse_json(data: bytes) -> Any:
    """The value of a report. Raises UnreadableReportError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableReportError(f"it is no JSON: {error}") from error


def json_lines(data: bytes) -> Iterator[Problem]:
    """The objects of a report with one on each line. Raises UnreadableReportError."""
    for line in data.splitlines():
        if line.strip():
            value = parse_json(line)
            if not isinstance(value, dict):
                raise UnreadableReportError("a line of it is no object")
            yield value


def _objects(value: Any) -> Iterator[Problem]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise UnreadableReportError("it is no list of objects")
    return iter(value)


def _text(problem: Problem, name: str) -> str:
    text = problem.get(name)
    if not isinstance(text, str):
        raise UnreadableReportError(f"a problem in it has no `{name}`")
    return text


def _line(holder: Any, name: str) -> int | None:
    line = holder.get(name) if isinstance(holder, dict) else None
    return line if isinstance(line, int) and line > 0 else None


def _title(problem: Problem, code: Any) -> str:
    message = _text(problem, "message")
    return f"{code}: {message}" if isinstance(code, str) and code else message
