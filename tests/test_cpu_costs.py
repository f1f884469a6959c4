"""The ceiling of the suite: unmarked tests that compute for too long fail, others are named or not."""

from __future__ import annotations

import os
from pathlib import Path

from tests.forks import CHECKOUT, run_python

CASES = """
import os, subprocess, sys, time
import pytest
from tests import cpu_costs

# As on a machine with nothing else to do: on a busy one, the same work takes more and may.
os.getloadavg = lambda: (0.0, 0.0, 0.0)
cpu_costs._count = lambda: 0.0

COMPUTE = "import time\\nwhile time.process_time() < 0.25: pass"

def compute(seconds=0.25):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    compute()

def test_waits(): time.sleep(0.1)
def test_shares(shared): pass
def test_computes(): compute()
def test_computes_a_little(): compute(0.13)
def test_starts(): subprocess.run([sys.executable, "-c", COMPUTE], check=True)
@pytest.mark.thorough
def test_may(): compute()
"""


def test_an_unmarked_test_that_computes_too_long_fails(tmp_path: Path) -> None:
    """What counts is the CPU time of a test and of what it starts, without waiting and without shared fixtures."""
    (tmp_path / "test_costs.py").write_text(CASES, "utf-8")
    words = "-p tests.cpu_costs -p no:cacheprovider -q --cpu-ceiling 0.1 -c /dev/null --rootdir".split()
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = run_python(("-m", "pytest", *words, str(tmp_path), str(tmp_path)), CHECKOUT, environment)

    errors = [line.partition("::")[2].split(" - ")[0] for line in done.stdout.splitlines() if line.startswith("ERROR ")]
    assert ["test_computes", "test_starts"] == errors, done.stdout
    assert "6 passed, " in done.stdout
    costs = [line for line in done.stdout.splitlines() if " is the most" in line and not line.startswith("ERROR ")]
    named = [line.partition("::")[2].split(" took ")[0] for line in costs]
    assert {"test_computes", "test_computes_a_little", "test_starts"} == set(named), done.stdout
