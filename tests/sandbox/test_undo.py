"""The undo of commands in the sandbox: beside a command of another run, and behind a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.limits import LIMIT_S
from tests.projects import Project
from tests.sandbox.conftest import Machine

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on go(args: Json) {
        await this.callAction("shell", { command: args.command, description: "to see" })
      }
    }
    """
# Ends when another file is there.
WAIT = "until [ -e %s ]; do sleep 0.02; done"


@pytest.fixture
def project(confined: Machine) -> Project:
    """A project without settings, whose commands are confined."""
    project = Project(confined.project)
    for name, command in {
        "a": f"echo a > made-by-a; {WAIT % 'made-by-b'}",
        "b": f"echo b > made-by-b; {WAIT % 'go'}",
        "c": "true",
    }.items():
        run = f'run Main.go({{ command: "{command}" }})'
        project.write(f"{name}.koi", PROGRAM + f"    {run}\n")
    return project


def begin(project: Project, name: str) -> subprocess.Popen[bytes]:
    """A program that is under way, once its command has made its file."""
    words = (sys.executable, "-m", "koi_lang", "run", "--quiet", "--allow", "shell", f"{name}.koi")
    process = subprocess.Popen(words, cwd=project.folder, env=project.environment)
    wait_for(project.folder / f"made-by-{name}")
    return process


def wait_for(path: Path) -> None:
    """Wait until something is there."""
    until = time.monotonic() + LIMIT_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} is missing"
        time.sleep(0.01)


def names(project: Project) -> list[str]:
    """The names in the folder."""
    return sorted(set(os.listdir(project.folder)) - {"a.koi", "b.koi", "c.koi", ".koi"})


def test_the_undo_of_one_of_two_runs(project: Project) -> None:
    """What either may have made stays and is named; no stand-in of the sandbox is brought back."""
    first, second = begin(project, "a"), begin(project, "b")
    assert 0 == first.wait(LIMIT_S)
    (project.folder / "go").touch()
    assert 0 == second.wait(LIMIT_S)

    undone = project.koi("undo", "--yes", "last")

    assert ["made-by-a", "made-by-b"] == names(project), undone
    assert ["remove go (shell)", "leave made-by-b: a command of the run"] == [
        " ".join(line.split()[:7]) for line in undone.stdout.splitlines()
    ]


def test_stand_ins_are_removed_behind_a_kill(project: Project) -> None:
    """By the next run in the folder, whatever it does, and by the undo of the one that was killed."""
    process = begin(project, "b")
    process.kill()
    process.wait()
    assert ".mcp.json" in names(project)

    project.write("d.koi", "role W { can execute }\nagent D : W { on go() { return 1 } }\nrun D.go({})\n")
    ran = project.koi("run", "--quiet", "d.koi")

    assert (0, ["d.koi", "made-by-b"]) == (ran.returncode, names(project))

    process = begin(project, "b")
    process.kill()
    process.wait()
    undone = project.koi("undo", "--yes", "last")

    assert ["d.koi", "made-by-b"] == names(project), undone
