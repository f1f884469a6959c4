"""What the compiler of TypeScript prints to findings."""

from __future__ import annotations

import re
from pathlib import Path

from koi_lang.std.checks.findings import CheckFinding, CheckReport, first_findings, name_place

# `src/a.ts(3,5): error TS2322: …`, or without a place what concerns the project; what goes on is indented.
PROBLEM = re.compile(r"(?:(.+)\((\d{1,9}),\d{1,9}\): )?error (TS\d{1,9}: .*)")


def read_tsc(data: bytes, folder: Path) -> CheckReport:
    """What `--pretty false` of tsc prints; nothing where all is well."""
    lines = data.decode("utf-8", "replace").split("\n")
    problems = [match for line in lines if (match := PROBLEM.fullmatch(line.rstrip("\r"))) is not None]

    def finding(problem: re.Match[str]) -> CheckFinding:
        return CheckFinding("important", problem[3], name_place(problem[1] or "", problem[2], folder))

    return CheckReport(int(not problems), int(bool(problems)), first_findings(problems, finding))
