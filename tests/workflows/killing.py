"""A script that is killed behind entries of its journal, each time in a process of its own, and resumed.

Run as `python -m tests.workflows.killing NAME STEP` in an empty folder: it kills behind every STEP-th entry, and writes
what is wrong, a line each. No task may be asked a second time once its answer was read, and the value stays the same.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.journal.killing import forked, kill_after, load_all
from tests.journal.random_kills import IS_OVER
from tests.workflows.answering import SCRIPTS, outcome_in_node

RUN = ("run", "--quiet", "--result", "--answers", "answers.json", "main.js")
RESUME = ("resume", "last", "--on-doubt", "retry")


def faults(name: str, step: int, base: Path) -> Iterator[str]:
    """What is wrong with a script that is killed behind every so many entries of its journal."""
    expected = outcome_in_node(name)
    lines, killed = 1, True
    while killed:
        folder = _project(name, base, expected)
        killed = bool(forked(RUN, folder, lambda lines=lines: kill_after(lines)))  # type: ignore[misc]
        code = forked(RESUME, folder, lambda: None) if killed else 0
        for fault in _faults_of(folder, code, expected):
            yield f"killed behind entry {lines}: {fault}"
        shutil.rmtree(folder)
        lines += step


def _faults_of(folder: Path, code: int, expected: Mapping[str, Any]) -> Iterator[str]:
    out, told = (folder / "out").read_text(), (folder / "err").read_text()
    if IS_OVER in told:  # it was killed behind its end
        return
    if code:
        yield f"it ended with {code}: {told}"
        return
    value = json.loads(out) if out.strip() else None
    if value != expected["value"]:
        yield f"it came to {value}"
    entries = [json.loads(line) for path in folder.glob(".koi/runs/*.jsonl") for line in path.read_text().splitlines()]
    answered = Counter(tuple(entry["path"]) for entry in entries if entry.get("kind") == "model_answered")
    if answered.total() != len(expected["calls"]):
        yield f"{answered.total()} answers were read for {len(expected['calls'])} tasks"


def _project(name: str, base: Path, expected: Mapping[str, Any]) -> Path:
    """A folder with the script and the answers of Node, always in the same place, so that it is compiled once."""
    folder = base / "again"
    folder.mkdir()
    shutil.copy(SCRIPTS / f"{name}.js", folder / "main.js")
    calls = Counter(expected["calls"])
    answers = {
        task: [{"intent": "return", "data": answer}] * calls[task] for task, answer in expected["answers"].items()
    }
    by_length = dict(sorted(answers.items(), key=lambda item: -len(item[0])))
    (folder / "answers.json").write_text(json.dumps(by_length))
    return folder


if __name__ == "__main__":
    load_all()
    for fault in faults(sys.argv[1], int(sys.argv[2]), Path.cwd()):
        sys.stdout.write(fault + "\n")
        sys.stdout.flush()
