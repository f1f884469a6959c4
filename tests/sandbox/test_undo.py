"""The undo of commands in the sandbox: beside a command of another run, and behind a kill."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from koi_lang.runtime.guards.repositories import RECORDS, digest_of
from koi_lang.settings import cache_folder
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project
from tests.sandbox.conftest import Machine
from tests.sandbox.test_repositories import EVIL, HOOK, make_repository, work_as_the_person

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
# Makes what the git of a person would run, and goes on.
TRAPS = (
    f"git init -q r; printf '{EVIL}' >> r/.git/config; mkdir -p r/.git/hooks; cd r/.git/hooks;"
    f" printf '{HOOK}' > pre-commit; chmod +x pre-commit; cd ../../..; touch made-by-traps; {WAIT % 'go'}"
)
THE_GUARD, THE_NEXT, AFTER_A_START = "the guard", "the next command", "the next command after a start of the machine"
GUARD = "own.end_killed("


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


def begin(project: Project, name: str) -> forks.Command:
    """A program that is under way, once its command has made its file."""
    words = ("run", "--quiet", "--allow", "shell", f"{name}.koi")
    process = forks.Command(words, project.folder, project.environment)
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
    kill_with_guard(project, begin(project, "b"))
    assert ".mcp.json" in names(project)

    project.write("d.koi", "role W { can execute }\nagent D : W { on go() { return 1 } }\nrun D.go({})\n")
    ran = project.koi("run", "--quiet", "d.koi")

    assert (0, ["d.koi", "made-by-b"]) == (ran.returncode, names(project))

    (project.folder / "made-by-b").unlink()
    kill_with_guard(project, begin(project, "b"))
    undone = project.koi("undo", "--yes", "last")

    assert ["d.koi"] == names(project), undone


@pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING: repositories are not tested")
@pytest.mark.parametrize("ends", [THE_GUARD, THE_NEXT, AFTER_A_START])
def test_a_repository_behind_a_kill(project: Project, ends: str) -> None:
    """A guard disables what git would run, the next command where the guard was killed, too; the person's stays."""
    make_repository(project.folder / "own")
    hook = project.folder / "own/.git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch OWN\n")
    hook.chmod(0o755)
    project.write("traps.koi", PROGRAM + f"    run Main.go({{ command: {json.dumps(TRAPS)} }})\n")
    koi = begin(project, "traps")
    if ends == THE_GUARD:
        koi.kill()
        koi.wait()
        wait_for(project.folder / "r/.git/hooks.disabled")
    else:
        kill_with_guard(project, koi)
        assert (project.folder / "r/.git/hooks").exists()
    records = cache_folder() / RECORDS
    for record in records.glob(f"{digest_of(project.folder.resolve())}-*") if ends == AFTER_A_START else ():
        renumber(record)
    lines = project.koi("run", "--allow", "shell", "c.koi").stderr
    for name in ("r", "own"):
        work_as_the_person(project.folder / name)

    assert ["own/OWN"] == [str(each.relative_to(project.folder)) for each in project.folder.glob("*/[A-Z]*")]
    assert 2 == lines.count("after a command that was interrupted: `r/.git/"), lines
    assert [] == [*records.glob(f"{digest_of(project.folder.resolve())}-*")]


def test_files_of_a_person_behind_a_kill(project: Project) -> None:
    """What was changed once the command had certainly ended stays, however long the command might have taken."""
    mine = project.write("mine", "before\n")
    kill_with_guard(project, begin(project, "b"))
    mine.write_text("by me\n")
    later_s = time.time() + 20
    os.utime(mine, (later_s, later_s))
    undone = project.koi("undo", "--yes", "last")

    assert ("by me\n", ["mine"]) == (mine.read_text(), names(project)), undone
    assert "leave       mine: somebody else has changed it since" in undone.stdout


def test_the_program_of_a_run_that_a_person_edits_meanwhile(project: Project) -> None:
    """The sandbox lets no command change it, so no undo does."""
    running = begin(project, "b")
    edited = (project.folder / "b.koi").read_text() + "// by me\n"
    (project.folder / "b.koi").write_text(edited)
    (project.folder / "go").touch()
    assert 0 == running.wait(LIMIT_S)
    undone = project.koi("undo", "--yes", "last")

    assert edited == (project.folder / "b.koi").read_text(), undone
    assert [] == names(project)


def renumber(record: Path) -> None:
    """Have all numbers of files in a record be those of another mount."""
    state = json.loads(record.read_text())
    state["project"][0] += 1
    for _, identity, _ in state["protected"]:
        identity[0] += 1
    record.write_text(json.dumps(state))


def kill_with_guard(project: Project, process: forks.Command) -> None:
    """Kill a process, and before it what would put right what it leaves."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            if any(GUARD in word for word in words) and str(project.folder.resolve()) in words:
                os.kill(int(folder.name), signal.SIGKILL)
                killed += 1
    process.kill()
    process.wait()
    assert 1 == killed
