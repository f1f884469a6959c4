"""Results to what people and build servers read."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from koi_lang.testing.cases import Broken, CaseOutcome, CaseResult
from koi_lang.testing.report import junit, line, report

PASSED = CaseOutcome(True, 0.25, "", ("fine",))
FAILED = CaseOutcome(False, 1.5, "error: it went wrong [E0500]\n --> a.test.koi:3:1", ("one\x00", "two"), ("note",))


def result(name: str, outcome: CaseOutcome, file: str = "a.test.koi") -> CaseResult:
    """The result of a case in the current folder."""
    return CaseResult(Broken(Path.cwd() / file, "", name), outcome)


RESULTS = [result("good", PASSED), result("bad", FAILED), result("", FAILED, "b.test.koi")]


def test_failures_come_first() -> None:
    """Each failure has its message and what was printed; then come counts and the time."""
    assert list(report(RESULTS[:2], 2.0, colour=False)) == [
        "failed a.test.koi: bad",
        "",
        "error: it went wrong [E0500]",
        " --> a.test.koi:3:1",
        "  printed:",
        "    one",
        "    two",
        "  logged:",
        "    note",
        "",
        "1 failed, 1 passed in 2.00 s",
    ]


def test_names_and_output_do_not_steer_the_terminal() -> None:
    """A name of a file or test may hold anything; a report shows it without escapes."""
    outcome = CaseOutcome(False, 0.0, "error: \x1b]0;no\x07oh", ("\x9b31m\x1b[8mred",))

    shown = "".join(report([result("a\x1b]0;title\x07\u202eb", outcome, "\x1b[8m.test.koi")], 1.0, colour=False))

    assert shown.isprintable()


def test_of_much_output_the_end_is_shown() -> None:
    """A failure shows the last lines of what was printed and says how many it leaves out."""
    outcome = CaseOutcome(False, 0.0, "error: oh", tuple(f"line {number}" for number in range(100)))

    lines = list(report([result("long", outcome)], 1.0, colour=False))

    assert ["  printed, without the first 70 lines:", "    line 70"] == lines[3:5]


@pytest.mark.parametrize(
    ("results", "told"),
    [([], "0 passed in 1.00 s"), (RESULTS[:1], "1 passed in 1.00 s"), (RESULTS[1:], "2 failed in 1.00 s")],
)
def test_counts(results: list[CaseResult], told: str) -> None:
    """What did not happen is not counted."""
    assert told == list(report(results, 1.0, colour=False))[-1]


def test_slowest_tests_are_listed() -> None:
    """As many as asked for, the slowest first."""
    lines = list(report([RESULTS[0], result("slow", CaseOutcome(True, 2.0))], 1.0, colour=False, durations=1))

    assert ["slowest:", "      2.00 s  a.test.koi: slow", "", "2 passed in 1.00 s"] == lines


def test_colours_only_where_wanted() -> None:
    """A terminal gets colours, nothing else does."""
    assert "passed a.test.koi: good (0.25 s)" == line(RESULTS[0], colour=False)
    assert "\x1b[32mpassed\x1b[0m a.test.koi: good (0.25 s)" == line(RESULTS[0], colour=True)


def parsed() -> Element:
    """The JUnit report of the results."""
    return fromstring(junit(RESULTS, 3.25))


def test_a_junit_report_counts() -> None:
    """The root and each file have the counts that build servers add up."""
    root = parsed()

    counts = [[each.get(name) for name in ("name", "tests", "failures", "errors", "time")] for each in (root, *root)]
    assert counts == [
        ["koi", "3", "2", "0", "3.250"],
        ["a.test.koi", "2", "1", "0", "1.750"],
        ["b.test.koi", "1", "1", "0", "1.500"],
    ]


def test_a_junit_report_has_every_case() -> None:
    """A case has its name, file and time; a failure its message and text, without what XML cannot hold."""
    cases = list(parsed().iter("testcase"))

    assert [("good", "a.test.koi", "0.250"), ("bad", "a.test.koi", "1.500"), ("b.test.koi", "b.test.koi", "1.500")] == [
        (case.get("name"), case.get("classname"), case.get("time")) for case in cases
    ]
    assert ["system-out"] == [part.tag for part in cases[0]]
    failure, printed, logged = cases[1]
    assert ("it went wrong [E0500]", "one\ufffd\ntwo", "note") == (failure.get("message"), printed.text, logged.text)
    assert "--> a.test.koi:3:1" in (failure.text or "")
