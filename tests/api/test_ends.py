"""How runs of Python programs end: as failed, as interrupted, or well, for whoever reads their journals."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import koi_lang
from tests.projects import Project

FAULTY = """
role Worker { can execute }
agent Clerk : Worker {
  on fail() { throw new RangeError("no paper") }
  on late() { setTimeout(() => { throw new Error("too late") }, 1) }
  on wait() { console.log("waits"); await new Promise(resolve => setTimeout(resolve, 3600000)) }
}
"""


@pytest.fixture
def clerk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program whose handlers fail, wait, or do well, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "clerk.koi"
    path.write_text(FAULTY + "run Clerk.fail()\n")
    return path


def end_of(folder: Path) -> dict[str, Any]:
    """The last line of the only journal below a folder."""
    (journal,) = folder.rglob("*.jsonl")
    found: dict[str, Any] = json.loads(journal.read_text("utf-8").splitlines()[-1])
    return found


def test_a_failed_run_is_recorded_as_failed(clerk: Path, tmp_path: Path) -> None:
    """A run that `koi_lang.run` raises for has not ended well, so that `koi resume` can go on with it."""
    with pytest.raises(koi_lang.ProgramError, match="no paper"):
        koi_lang.run(clerk)

    assert ("run_ended", False) == (end_of(tmp_path)["kind"], end_of(tmp_path)["ok"])


def test_a_cancelled_program_is_recorded_as_interrupted(clerk: Path, tmp_path: Path) -> None:
    """Cancelling whoever holds a program interrupts its run."""

    async def hold() -> None:
        async with koi_lang.open(clerk) as program:
            task = asyncio.current_task()
            assert task is not None
            async for event in program.agent("Clerk").stream("wait"):
                if event.type == "printed":
                    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hold())

    assert (False, True) == (end_of(tmp_path)["ok"], end_of(tmp_path).get("interrupted"))


def test_a_late_failure_is_raised_when_the_program_is_left(clerk: Path, tmp_path: Path) -> None:
    """What fails in the background after its call has ended is not lost."""

    async def use() -> None:
        async with koi_lang.open(clerk) as program:
            await program.agent("Clerk").late()
            await asyncio.sleep(0.1)

    with pytest.raises(koi_lang.ProgramError, match="too late"):
        asyncio.run(use())

    assert end_of(tmp_path)["ok"] is False


def test_koi_resume_passes_over_what_python_has_ended(clerk: Path, project: Project) -> None:
    """Without an id `koi resume` takes the last run that has something to go on with, not one whose calls are over."""
    project.write("clerk.koi", clerk.read_text())
    failed = project.koi("run", "clerk.koi")
    left = "async def leave():\n    async with koi_lang.open('clerk.koi'):\n        raise OSError"
    project.fork_python(f"import asyncio, koi_lang\n{left}\nasyncio.run(leave())")

    resumed = project.koi("resume")

    assert (1, 1) == (failed.returncode, resumed.returncode)
    assert "no paper" in resumed.stderr
