"""A program, and a recorded run of 200 actions, to how long it takes to stop in them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import Figure, environment, repeat
from tests.dap.client import Client
from tests.dap.programs import TEAM

ACTIONS = 200
PRINT = {"intent": "print", "message": "counting"}


def figures(folder: Path) -> list[Figure]:
    """The first breakpoint of a cached program, and steps back in a recorded run."""
    program = folder / "debugged.koi"
    program.write_text(textwrap.dedent(TEAM).lstrip(), "utf-8")
    answers = folder / "debugged.answers.json"
    answers.write_text(json.dumps([{"batch": [PRINT] * ACTIONS}, {"intent": "return", "data": {"words": 5}}]), "utf-8")
    words = [sys.executable, "-m", "koi_lang", "run", "--quiet", "--answers", str(answers), str(program)]
    subprocess.run(words, cwd=folder, env=environment(), check=True, stdout=subprocess.DEVNULL)
    run = max((folder / ".koi" / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns).stem
    first = repeat(5, lambda: _first_breakpoint(folder, program, answers))
    return [
        Figure("from launch to the first breakpoint", 1.5, first, "s"),
        Figure("a step back in a run of 200 actions", 2.0, _steps_back(folder, run), "s"),
    ]


@contextmanager
def _debugging(folder: Path, *words: str) -> Iterator[Client]:
    command = [sys.executable, "-m", "koi_lang", "debug", *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=pipe, stdout=pipe)
    with process:
        yield Client(process)
        process.communicate()


def _first_breakpoint(folder: Path, program: Path, answers: Path) -> float:
    """Seconds from the start of the process on."""
    start_s = time.monotonic()
    with _debugging(folder, str(program), "--answers", str(answers)) as client:
        client.launch({program: [8]})
        assert client.stop() == "breakpoint 8 Lead.start"
        return time.monotonic() - start_s


def _steps_back(folder: Path, run: str) -> list[float]:
    with _debugging(folder, run) as client:
        client.launch({folder / "debugged.koi": [16]})
        assert client.stop() == "breakpoint 16 Lead.report"
        return [_seconds(client) for _ in range(5)]


def _seconds(client: Client) -> float:
    start_s = time.monotonic()
    assert client.go("stepBack").startswith("step")
    return time.monotonic() - start_s
