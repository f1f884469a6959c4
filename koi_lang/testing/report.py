"""Results to the lines a person reads: failures first, then counts and times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from koi_lang.system.text_width import clean
from koi_lang.testing.cases import Case, CaseResult, title

RED = "\x1b[31m"
GREEN = "\x1b[32m"
BOLD = "\x1b[1m"
PLAIN = "\x1b[0m"
# Of what a failed case has printed, the last lines are shown.
MAX_LINES = 30


def report(results: Sequence[CaseResult], seconds: float, *, colour: bool, durations: int = 0) -> Iterator[str]:
    """The lines at the end of all tests.

    Args:
        results: in the order the cases were found in.
        seconds: how long everything took together.
        colour: whether the terminal shows colours.
        durations: how many of the slowest cases are listed.
    """
    for result in results:
        if not result.outcome.ok:
            yield from _failure(result, colour)
    if durations:
        yield from _slowest(results, durations)
    yield summarize(results, seconds, colour=colour)


def summarize(results: Sequence[CaseResult], seconds: float, *, colour: bool) -> str:
    """How many cases passed and failed: `1 failed, 2 passed in 0.10 s`."""
    passed = sum(result.outcome.ok for result in results)
    failed = len(results) - passed
    counts = [f"{failed} failed"] if failed else []
    counts += [f"{passed} passed"] if passed or not failed else []
    return _paint(f"{', '.join(counts)} in {seconds:.2f} s", RED if failed else GREEN, colour)


def line(result: CaseResult, *, colour: bool) -> str:
    """One case on a line."""
    word, shade = ("passed", GREEN) if result.outcome.ok else ("failed", RED)
    return f"{_paint(word, shade, colour)} {_title(result)} ({result.outcome.seconds:.2f} s)"


def details(result: CaseResult) -> Iterator[str]:
    """The details of a failure."""
    outcome = result.outcome
    yield from clean(outcome.message).split("\n")
    for name, lines in (("printed", outcome.printed), ("logged", outcome.logged)):
        if lines:
            left_out = len(lines) - MAX_LINES
            yield f"  {name}:" if left_out <= 0 else f"  {name}, without the first {left_out} lines:"
            yield from (f"    {clean(line)}".rstrip() for line in lines[-MAX_LINES:])


def _failure(result: CaseResult, colour: bool) -> Iterator[str]:
    yield _paint(f"failed {_title(result)}", RED + BOLD, colour)
    yield ""
    yield from details(result)
    yield ""


def _slowest(results: Sequence[CaseResult], count: int) -> Iterator[str]:
    slowest = sorted(results, key=lambda result: -result.outcome.seconds)[:count]
    yield "slowest:"
    yield from (f"  {result.outcome.seconds:8.2f} s  {_title(result)}" for result in slowest)
    yield ""


def _title(result: CaseResult) -> str:
    """File and name of a case; both may hold anything."""
    return clean(title(result.case))


def _paint(text: str, shade: str, colour: bool) -> str:
    return f"{shade}{text}{PLAIN}" if colour else text


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
