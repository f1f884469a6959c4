"""Cases and results as records for other programs, one JSON object a line."""

from __future__ import annotations

import json
from typing import Any

from koi_lang.testing.cases import Case, CaseResult


def case_line(case: Case) -> str:
    """Where a case is: `file` (absolute), `line` (from 1) and `name`, empty for a file as a whole."""
    return json.dumps(_place(case), ensure_ascii=False)


def result_line(result: CaseResult) -> str:
    """The same with `outcome`, `seconds`, `printed`, and of a failure `message` and `at`, its file and line."""
    outcome = result.outcome
    fields: dict[str, Any] = {"outcome": "passed" if outcome.ok else "failed", "seconds": round(outcome.seconds, 3)}
    fields["printed"] = [*outcome.printed]
    if not outcome.ok:
        fields["message"] = outcome.message
        fields["at"] = None if outcome.at is None else {"file": str(outcome.at.path), "line": outcome.at.line}
    return json.dumps(_place(result.case) | fields, ensure_ascii=False)


def _place(case: Case) -> dict[str, Any]:
    return {"file": str(case.path), "line": case.line, "name": case.name}
