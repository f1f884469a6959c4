"""Results to the lines a person reads, failures first, to JSON, and to a JUnit report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from koi_lang.system.text_width import clean
from koi_lang.testing.cases import Case, CaseResult, relative_path, title

RED = "\x1b[31m"
GREEN = "\x1b[32m"
BOLD = "\x1b[1m"
PLAIN = "\x1b[0m"
# Of what a failed case has printed, the last lines are shown.
MAX_LINES = 30
# Characters that no XML document may hold.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    count = result.outcome.orders
    orders = f"{count} order{'' if count == 1 else 's'}, " if count else ""
    return f"{_paint(word, shade, colour)} {_title(result)} ({orders}{result.outcome.seconds:.2f} s)"


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
    """The same with `outcome`, `seconds`, `printed`, `orders`, and of a failure `message` and `at` (file and line)."""
    outcome = result.outcome
    fields: dict[str, Any] = {"outcome": "passed" if outcome.ok else "failed", "seconds": round(outcome.seconds, 3)}
    fields["printed"] = [*outcome.printed]
    if outcome.orders:
        fields["orders"] = outcome.orders
    if not outcome.ok:
        fields["message"] = outcome.message
        fields["at"] = None if outcome.at is None else {"file": str(outcome.at.path), "line": outcome.at.line}
    return json.dumps(_place(result.case) | fields, ensure_ascii=False)


def _place(case: Case) -> dict[str, Any]:
    return {"file": str(case.path), "line": case.line, "name": case.name}


def junit(results: Sequence[CaseResult], seconds: float) -> bytes:
    """One suite a file, one case a test. `results` are in the order the cases were found in."""
    root = Element("testsuites", {"name": "koi", **_counts(results, seconds)})
    for path, group in groupby(results, key=lambda result: result.case.path):
        listed = list(group)
        time = sum(result.outcome.seconds for result in listed)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        about = {
            "name": _clean(relative_path(path)),
            **_counts(listed, time),
            "timestamp": now,
            "hostname": "localhost",
        }
        suite = SubElement(root, "testsuite", about)
        for result in listed:
            _add(suite, result)
    indent(root)
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(results: Sequence[CaseResult], seconds: float) -> dict[str, str]:
    failures = sum(not result.outcome.ok for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(failures),
        "errors": "0",
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }


def _add(suite: Element, result: CaseResult) -> None:
    case, outcome = result.case, result.outcome
    path = relative_path(case.path)
    about = {"name": _clean(case.name or path), "classname": _clean(path), "time": f"{outcome.seconds:.3f}"}
    element = SubElement(suite, "testcase", about)
    if not outcome.ok:
        message = outcome.message.partition("\n")[0].removeprefix("error: ")
        failure = SubElement(element, "failure", {"message": _clean(message), "type": "failure"})
        failure.text = _clean("\n".join(details(result)))
    for name, lines in (("system-out", outcome.printed), ("system-err", outcome.logged)):
        if lines:
            SubElement(element, name).text = _clean("\n".join(lines))


def _clean(text: str) -> str:
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
