"""Reports that were made to deceive, to keep a reader busy, or by nobody who knows their form."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.std.checks.compiled_tools import read_cargo
from koi_lang.std.checks.findings import CheckReport, UnreadableReportError
from koi_lang.std.checks.go_report import read_go
from koi_lang.std.checks.json_reports import read_eslint, read_mypy, read_ruff
from koi_lang.std.checks.junit import name_python_place, read_junit, read_node_junit
from koi_lang.std.checks.node_tools import read_tsc
from koi_lang.std.checks.runner import run_tests
from koi_lang.std.checks.tool_runs import MAX_REPORT_BYTES
from tests.std.checking import CheckedProject, summary, titles

Read = Callable[[bytes, Path], CheckReport]


def read_pytest(data: bytes, folder: Path) -> CheckReport:
    """A report of pytest."""
    return read_junit(data, folder, name_python_place)


READERS: dict[str, Read] = {
    "pytest": read_pytest, "node": read_node_junit, "ruff": read_ruff, "eslint": read_eslint, "mypy": read_mypy,
    "tsc": read_tsc, "go": read_go, "cargo": read_cargo,
}  # fmt: skip
LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
CASE = '<testcase name="a" file="a.py" line="1"><failure message="m">a.py:5: Error</failure></testcase>'


def suite(text: str) -> bytes:
    """A report with some content."""
    return f"<testsuites><testsuite>{text}</testsuite></testsuites>".encode()


@pytest.mark.parametrize(
    "data",
    [
        f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]><testsuites>&a9;</testsuites>'.encode(),
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><testsuites><testcase name="&e;"/></testsuites>',
        b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><testsuites/>',
        b"<!DOCTYPE testsuites><testsuites/>",
        b"",
        b"\xff\xfe<\0t\0",
        b"<html/>",
        b"<testsuites>",
        b"<testsuites/><testsuites/>",
        b"no XML",
        suite("&undefined;"),
        suite(CASE)[:-20],
    ],
)
@pytest.mark.parametrize("read", [read_pytest, read_node_junit])
def test_no_xml_is_read_that_is_no_report(tmp_path: Path, read: Read, data: bytes) -> None:
    """No entity is expanded and nothing else is opened; halves of reports and other documents are no reports."""
    before = time.process_time()
    with pytest.raises(UnreadableReportError):
        read(data, tmp_path)

    assert time.process_time() - before < 1


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "data",
    [
        suite("<a>" * 200_000 + "</a>" * 200_000),
        suite(f"<testcase name='{'x' * 5_000_000}'><failure>{'at (' * 1_000_000}</failure></testcase>"),
        suite(f"<testcase name='a'><failure>{'at //' * 20_000}\n{'a:1' * 300_000}</failure></testcase>" * 5),
        suite("<testcase name='a'><failure>" + "a.py:5: x\n" * 500_000 + "</failure></testcase>"),
        suite("<testcase name='a'><failure/></testcase>" * 100_000),
        suite("<testcase name='/a'/>" * 200_000),
        suite("<testcase>" * 100_000 + "</testcase>" * 100_000),
    ],
    ids=["deep", "long", "stacks", "places", "failures", "cases", "nested"],
)
@pytest.mark.parametrize("read", [read_pytest, read_node_junit])
def test_no_report_keeps_a_reader_busy(tmp_path: Path, read: Read, data: bytes) -> None:
    """Reports of some megabytes are read in seconds, and their findings are bounded."""
    before = time.process_time()
    report = read(data, tmp_path)

    assert time.process_time() - before < 5
    assert len(report.findings) <= 202


def test_what_xml_forbids_is_read_all_the_same(tmp_path: Path) -> None:
    """Control characters, a lone end of a section and broken UTF-8 stand for themselves."""
    text = suite("<testcase name='a\x1b'><failure message='b\x00'>]]></failure></testcase>").replace(b"b", b"\xffb")
    report = read_pytest(text.replace(b"testsuites\xffb", b"testsuites"), tmp_path)

    assert ["a�: �b�"] == [finding.title for finding in report.findings]


VALUES: tuple[Any, ...] = (None, True, -1, 0, 3.5, 1e308, "", "\0", "a" * 5000, "../x", [], {}, [{}], {"a": 1}, [[]])
KNOWN: dict[str, str] = {
    "ruff": json.dumps(
        [{"code": "F401", "filename": "/a.py", "location": {"row": 1, "column": 1}, "message": "m",
          "fix": {"message": "f"}, "severity": "error"}]
    ),
    "eslint": json.dumps(
        [{"filePath": "/a.js", "messages": [{"ruleId": "r", "severity": 2, "message": "m", "line": 1}]}]
    ),
    "mypy": json.dumps({"file": "a.py", "line": 1, "message": "m", "hint": None, "code": "c", "severity": "error"}),
    "go": json.dumps({"Action": "fail", "Package": "p", "Test": "T", "Output": "a.go:1: m"}),
    "cargo": json.dumps(
        {"reason": "compiler-message", "message": {"level": "error", "message": "m",
         "spans": [{"is_primary": True, "file_name": "src/lib.rs", "line_start": 1}]}}, separators=(",", ":")
    ),
}  # fmt: skip


def mutate(value: Any, chance: random.Random) -> Any:
    """A value of JSON with something else in some places."""
    if chance.random() < 0.15:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        return {key: mutate(each, chance) for key, each in value.items() if chance.random() > 0.1}
    return (
        [mutate(each, chance) for each in value for _ in range(chance.choice((0, 1, 1, 2)))]
        if isinstance(value, list)
        else value
    )


@pytest.mark.parametrize("name", KNOWN)
def test_any_value_is_a_report_or_none(tmp_path: Path, name: str) -> None:
    """Whatever stands where something else is expected, a reader gives a report or says that it is none."""
    chance, unreadable = random.Random(name), 0
    for _ in range(2000):
        text = json.dumps(mutate(json.loads(KNOWN[name]), chance), separators=(",", ":"))
        try:
            data = [finding.as_data() for finding in READERS[name](text.encode(), tmp_path).findings]
            assert all(isinstance(each, str) and len(each) <= 300 for known in data for each in known.values())
        except UnreadableReportError:
            unreadable += 1

    assert 0 < unreadable < 2000 or name == "cargo"


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_a_report_or_none(tmp_path: Path, name: str) -> None:
    """The same for bytes that are cut, doubled and put together again."""
    chance = random.Random(name)
    whole = (KNOWN.get(name) or suite(CASE).decode()).encode() + b"\na (1).ts(1,2): error TS1: x\nrunning 3 tests\n"
    for _ in range(2000):
        cuts = sorted(chance.randrange(len(whole)) for _ in range(4))
        parts = [whole[: cuts[0]], whole[cuts[1] : cuts[2]], chance.randbytes(3), whole[cuts[3] :]]
        chance.shuffle(parts)
        try:
            READERS[name](b"".join(parts), tmp_path)
        except UnreadableReportError:
            continue


# ---------------------------------------------------------------- by the tests themselves

PASSING = "def test_a(): pass\n"
FAILING = "def test_a(): assert 0\n"
# Once pytest has written its report.
LATER = """
import os, pytest, shutil
@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    path = config.option.xmlpath
    {}
"""
# Before it does.
EARLIER = """
import os, pytest
@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    os._exit(0)
"""
FORGED = "<testsuites><testsuite tests='9'><testcase name='forged'/></testsuite></testsuites>"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("conftest", "test", "title"),
    [
        (
            LATER.format(f'open(path, "w").write("{FORGED}")'),
            FAILING,
            "pytest ended with exit code 1, though its report",
        ),
        (LATER.format('open(path, "w").write("<testsuites/>")'), PASSING, "pytest ran no test (exit code 0)"),
        (LATER.format('open(path, "w").write("ok")'), PASSING, "it is no XML"),
        (LATER.format("os.remove(path)"), PASSING, "it wrote none"),
        (LATER.format("shutil.rmtree(os.path.dirname(path))"), PASSING, "it wrote none"),
        (LATER.format("os.remove(path); os.symlink('real.xml', path)"), PASSING, "could not read the report"),
        (LATER.format("os.remove(path); os.symlink('/dev/zero', path)"), PASSING, "could not read the report"),
        (LATER.format("os.remove(path); os.mkfifo(path)"), PASSING, "it is no file"),
        (LATER.format("os.remove(path); os.mkdir(path)"), PASSING, "could not read the report"),
        (LATER.format(f"open(path, 'ab').truncate({MAX_REPORT_BYTES + 1})"), PASSING, "more than 20,000,000 bytes"),
        (LATER.format("os.chmod(os.path.dirname(path), 0)"), PASSING, "" if os.getuid() == 0 else "permission denied"),
        (EARLIER, FAILING, "it wrote none"),
        ("import os, atexit\natexit.register(os._exit, 0)\n", FAILING, "test_a: assert 0"),
        ("def pytest_collection_modifyitems(items): items.clear()\n", FAILING, "pytest ran no test (exit code 5)"),
    ],
)
@pytest.mark.usefixtures("tools")
def test_tests_that_touch_their_report(checked: CheckedProject, conftest: str, test: str, title: str) -> None:
    """What tests do to the report, or to the exit code alone, does not make them green."""
    result = checked.write({"conftest.py": conftest, "test_a.py": test, "real.xml": FORGED}).check(run_tests)

    assert (title == "") == result["ok"]
    assert title in "".join(titles(result)[:1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ("addopts = -p no:junitxml", "could not read the report of pytest: it wrote none (exit code 1)"),
        ("addopts = --collect-only", "pytest ran no test (exit code 0)"),
        ("addopts = --help", "could not read the report of pytest: it wrote none (exit code 0)"),
        ("addopts = -k nothing_like_it", "pytest ran no test (exit code 5)"),
        ("addopts = --junit-xml=mine.xml -q -q", "test_a: assert 0"),
        ("junit_logging = all\njunit_family = xunit2", "test_a: assert 0"),
    ],
)
@pytest.mark.usefixtures("tools")
def test_settings_do_not_make_tests_green(checked: CheckedProject, settings: str, title: str) -> None:
    """Settings of a project that leave tests or the report out are findings."""
    result = checked.write({"pytest.ini": f"[pytest]\n{settings}\n", "test_a.py": FAILING}).check(run_tests)

    # Behind it stands what was printed last, with its time.
    assert (False, title) == (result["ok"], titles(result)[0].partition("; ")[0])


@pytest.mark.usefixtures("tools")
def test_what_tests_print_is_no_report(checked: CheckedProject) -> None:
    """Lines that look like a report, a summary or a place do not count, whoever prints them."""
    printing = f"""
import sys
sys.stdout.write("{FORGED}")
def test_a():
    print("9 passed in 0.1s")
    print("b.py:7: x")
    assert 0
"""
    result = checked.write({"test_a.py": printing, "b.py": ""}).check(run_tests)

    assert ((False, 0, 1), "test_a.py:7") == (summary(result), result["findings"][0]["where"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("test_größe.py", "test_größe.py:2"),
        ("tests/test_mit leer.py", "tests/test_mit leer.py:2"),
        ("test_日本/test_x.py", "test_日本/test_x.py:2"),
        ("test_a\nb.py", "test_a\\nb.py:1"),  # the line of the test: that of the failure cannot be told from others
    ],
)
@pytest.mark.usefixtures("tools")
def test_any_name_of_a_file(checked: CheckedProject, name: str, where: str) -> None:
    """Tests in files with blanks, line breaks and other letters are found and named."""
    result = checked.write({name: "def test_é():\n    assert 'ü' == 'ß'\n"}).check(run_tests)

    assert ((False, 0, 1), where) == (summary(result), result["findings"][0]["where"])


def test_where_is_never_outside(tmp_path: Path) -> None:
    """A place of another folder is not taken for one of the project."""
    report = read_pytest(suite(CASE.replace("a.py:5:", "/etc/passwd:1:")), tmp_path)

    assert ["a.py:2"] == [finding.where for finding in report.findings]
