"""Reports in JUnit's XML to findings. No entity is expanded, and no size or depth of a report is trusted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote
from xml.parsers import expat

from koi_lang.std.checks.findings import CheckFinding, CheckReport, UnreadableReportError, first_findings, name_place

# In characters, of what is kept of one failure.
MAX_FAILURE_CHARS = 100_000
# What XML cannot hold, and tests print all the same.
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
FAILURES = ("failure", "error")
# Where a failure of Python is told: at the beginning of a line.
PYTHON_PLACE = re.compile(r"^([^\s:][^:\n]*):(\d+): ", re.M)
# What a line of a stack of JavaScript ends with.
NODE_PLACE = re.compile(r"(?:file://)?(/.*):(\d+):\d+\)?,?(?: \{)?")
MAX_STACK_LINE_CHARS = 1000
# Folders whose files are not the project's own.
FOREIGN = frozenset(("node_modules", "site-packages"))
# Of one failure, that are looked at.
MAX_PLACES = 100
# What pytest says of a file that it cannot import.
COLLECTION = "collection failure"


@dataclass(slots=True)
class JunitCase:
    """A test of a report.

    Attributes:
        place: its file and the line in that, as the tool names them; either may be empty.
        result: `failure`, `error`, `skipped`, or empty where it passed.
        message: of a failure, in short.
        text: of a failure, as a whole.
    """

    name: str
    place: tuple[str, str]
    result: str = ""
    message: str = ""
    text: str = ""


# Names the place of a failure, from the folder of the project.
NamePlace = Callable[[JunitCase, Path], str]


@dataclass(slots=True)
class _Reader:
    """Handlers of a parser; it keeps the tests of a report."""

    cases: list[JunitCase] = field(default_factory=list)
    open_case: JunitCase | None = None
    is_in_result: bool = False
    has_suites: bool = False

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("testsuites", "testsuite"):
            self.has_suites = True
        elif name == "testcase":
            place = attributes.get("file", ""), attributes.get("line", "")
            self.open_case = JunitCase(attributes.get("name") or "a test without a name", place)
            self.cases.append(self.open_case)
        elif self.open_case is not None and name in (*FAILURES, "skipped"):
            self.open_case.result = self.open_case.result if self.open_case.result in FAILURES else name
            self.open_case.message = self.open_case.message or attributes.get("message", "")
            self.is_in_result = name in FAILURES

    def end(self, name: str) -> None:
        if name == "testcase":
            self.open_case = None
        self.is_in_result = self.is_in_result and name not in FAILURES

    def add_text(self, text: str) -> None:
        if self.is_in_result and self.open_case is not None and len(self.open_case.text) < MAX_FAILURE_CHARS:
            self.open_case.text += text


def read_cases(data: bytes) -> list[JunitCase]:
    """The tests of a report in order. Raises UnreadableReportError."""
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.add_text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(_as_xml(data), True)
    except expat.ExpatError as error:
        raise UnreadableReportError(f"it is no XML: {error}") from error
    if not reader.has_suites:
        raise UnreadableReportError("it is not in the form of JUnit")
    return reader.cases


def _as_xml(data: bytes) -> bytes:
    """The output of a tool as valid XML: texts of tests contain forbidden characters, and tools pass them on."""
    text = NO_XML.sub("\ufffd", data.decode("utf-8", "replace"))
    return (text if "<![CDATA[" in text else text.replace("]]>", "]]&gt;")).encode()


def _refuse_doctype(*about: object) -> None:
    raise UnreadableReportError("it declares entities, which no tool for tests does")


def read_junit(data: bytes, folder: Path, name_failure: NamePlace) -> CheckReport:
    """A report. Raises UnreadableReportError."""
    return report_cases(read_cases(data), folder, name_failure)


def report_cases(cases: Sequence[JunitCase], folder: Path, name_failure: NamePlace) -> CheckReport:
    """The report of some test cases."""
    failed = [case for case in cases if case.result in FAILURES]

    def finding(case: JunitCase) -> CheckFinding:
        title = f"{case.name}: {why}" if (why := _reason(case)) else f"{case.name} failed"
        return CheckFinding("blocker", title, name_failure(case, folder))

    passed = sum(not case.result for case in cases)
    return CheckReport(passed, len(failed), first_findings(failed, finding))


def read_node_junit(data: bytes, folder: Path) -> CheckReport:
    """A report of Node's test runner. Raises UnreadableReportError.

    A file that ends its process, and takes the rest of its tests along, is reported as one test with the name of the
    file, which passed; so is one that declares no test. Neither counts as one.
    """
    cases = read_cases(data)
    for case in cases:  # quotation marks in attributes are escaped twice
        case.name, case.message = (text.replace("&quot;", '"') for text in (case.name, case.message))
    report = report_cases(cases, folder, name_node_place)
    silent = [case.name for case in cases if not case.result and os.path.isabs(case.name)]

    def finding(file: str) -> CheckFinding:
        title = "the file ended without reporting its tests"
        fix = "Declare tests with `test` of `node:test`, and do not end the process in them."
        return CheckFinding("blocker", title, name_place(file, None, folder), fix)

    findings = [*report.findings, *first_findings(silent, finding)]
    return CheckReport(report.passed - len(silent), report.failed + len(silent), findings)


def _reason(case: JunitCase) -> str:
    """Why a test failed; where pytest could not even read it, the last line says that."""
    if case.message != COLLECTION:
        return (case.message or case.text).strip()
    lines = [line.removeprefix("E").strip() for line in case.text.splitlines()]
    return next(filter(None, reversed(lines)), COLLECTION)


def name_python_place(case: JunitCase, folder: Path) -> str:
    """Where a test of pytest failed: the last line of the project that the failure names, else that of the test."""
    for file, line in reversed(PYTHON_PLACE.findall(case.text)[-MAX_PLACES:]):
        if _is_own(file, folder):
            return name_place(file, line, folder)
    file, line = case.place
    return name_place(file, int(line) + 1 if re.fullmatch("[0-9]{1,9}", line) else None, folder)


def name_node_place(case: JunitCase, folder: Path) -> str:
    """Where a test of Node failed: the first line of the project in its stack, else its file."""
    lines = [line.strip() for line in case.text.split("\n") if len(line) <= MAX_STACK_LINE_CHARS]
    for line in lines[:MAX_PLACES]:
        place = NODE_PLACE.fullmatch(line.removeprefix("at ").rpartition("(")[2]) if line.startswith("at ") else None
        if place is not None and _is_own(file := unquote(place[1]), folder):
            return name_place(file, place[2], folder)
    return name_place(case.place[0], None, folder)


def _is_own(file: str, folder: Path) -> bool:
    path = folder / file
    return path.is_relative_to(folder) and not FOREIGN & set(path.parts) and os.path.isfile(path)
