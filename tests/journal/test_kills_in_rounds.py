"""Work in rounds that is killed at boundaries of its journal ends as it would have, with the files of the best."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.reader import read
from tests.journal.killing import RUN
from tests.projects import Project

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# A case takes every so many entries.
STEP = 24
WRITES = "    const { decision, round, score, history }"
# Each run of the tests leaves a line that no snapshot holds.
NOTE = "    await writeFile(\"mended/conftest.py\", \"open('.effects', 'a').write('tests\\\\n')\\n\")\n"


@pytest.fixture
def mending(project: Project) -> Project:
    """The example that mends a function, whose tests leave a line behind each time."""
    text = (EXAMPLES / "improve.koi").read_text("utf-8")
    assert WRITES in text
    project.write("main.koi", text.replace(WRITES, NOTE + WRITES))
    shutil.copy(EXAMPLES / "improve.answers.json", project.folder / "answers.json")
    return project


def kinds(project: Project) -> list[tuple[str, str]]:
    """Each line of the journal: its kind, and what began or ended; the first one is the header."""
    (journal,) = store.journals(project.folder)
    return [("header", ""), *((entry.kind, str(entry.data.get("intent"))) for entry in read(journal).entries)]


# Its parts are in the usual suite: checks that are killed (`tests/std/test_recorded_checks.py`) and judges.
@pytest.mark.thorough
@pytest.mark.parametrize("first", range(5, 5 + STEP, 6))
def test_a_killed_improvement_ends_as_it_would_have(mending: Project, first: int) -> None:
    """The output is the same; tests that have ended are not run again, and those that were cut off once more."""
    whole = mending.koi(*RUN)
    assert 0 == whole.returncode, whole.stderr
    assert "nothing is different" in mending.koi("replay", "last", "--quiet").stderr
    lines = kinds(mending)
    shutil.rmtree(mending.folder / "mended")
    shutil.rmtree(mending.folder / ".koi")
    done = mending.fork("-m", "tests.journal.killing", str(first), str(STEP))
    outcomes: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(outcomes) >= (len(lines) - first) // STEP, done.stderr
    for outcome in outcomes:
        if not outcome["killed"]:
            continue
        before = Counter(kind for kind, what in lines[: outcome["lines"]] if what.startswith("checks"))
        again = before["begun"] - before["done"]
        assert (-signal.SIGKILL, 0) == (outcome["killed"], outcome["resumed"]), outcome
        assert whole.stdout == outcome["out"], outcome
        assert 2 <= outcome["effects"].count("tests") <= 2 + again, outcome
