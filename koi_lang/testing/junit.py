"""Results to a JUnit report, as build servers read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from koi_lang.testing.cases import CaseResult, relative_path
from koi_lang.testing.report import details

# Characters that no XML document may hold.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
