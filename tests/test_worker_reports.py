"""What a worker of the suite sends of its tests: all that the terminal shows, and no more."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from tests.forks import CHECKOUT, run_python

# The hook where a process takes itself for a worker; instead of being sent, reports are written at the end.
WORKER = """
from tests.conftest import pytest_runtest_protocol

sent = []

def pytest_configure(config):
    config.workerinput = {}

def pytest_runtest_logreport(report):
    sent.append((report.nodeid.partition("::")[2], report.when, report.outcome, bool(report.keywords)))

def pytest_unconfigure():
    print(f"sent {sent}")
"""
CASES = """
import pytest

@pytest.fixture
def broken(): raise ValueError

@pytest.fixture
def left():
    yield
    raise ValueError

def test_passes(): pass
def test_fails(): raise ValueError
def test_begins_badly(broken): pass
def test_ends_badly(left): pass
def test_is_left_out(): pytest.skip()
"""
SENT = {
    ("test_passes", "call", "passed", False),
    ("test_passes", "teardown", "passed", False),
    ("test_fails", "call", "failed", True),
    ("test_fails", "teardown", "passed", False),
    ("test_begins_badly", "setup", "failed", True),
    ("test_begins_badly", "teardown", "passed", False),
    ("test_ends_badly", "call", "passed", False),
    ("test_ends_badly", "teardown", "failed", True),
    ("test_is_left_out", "call", "skipped", True),
    ("test_is_left_out", "teardown", "passed", False),
}
# For whom an option shows more, the beginning of each test is sent, too, and so are the keywords.
ALL = {(name, when, outcome, True) for name, when, outcome, _ in SENT} | {
    (name, "setup", "passed", True) for name, *_ in SENT if name != "test_begins_badly"
}


@pytest.mark.parametrize(
    ("option", "expected"), [("-q", SENT), ("-v", ALL), ("--durations=1", ALL), ("--junit-xml=report.xml", ALL)]
)
def test_a_worker_sends_what_the_terminal_shows(tmp_path: Path, option: str, expected: set[object]) -> None:
    """Ends and failures; where an option shows more, everything."""
    (tmp_path / "conftest.py").write_text(WORKER, "utf-8")
    (tmp_path / "test_cases.py").write_text(CASES, "utf-8")
    words = ("-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), option, str(tmp_path))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(CHECKOUT)}

    done = run_python(("-m", "pytest", *words), tmp_path, environment)

    (sent,) = [line.removeprefix("sent ") for line in done.stdout.splitlines() if line.startswith("sent ")]
    assert expected == {*ast.literal_eval(sent)}, done.stdout
