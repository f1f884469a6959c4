"""Signals end the shell commands of a run with all that these have started, and leave a run that goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

COMMAND = "test -e go && echo done || { sleep 600 & echo $$ $! > pids.new; mv pids.new pids; wait; }"
PROGRAM = """
    role R { can execute }
    agent A : R {
      on go(x: Json) {
        console.log("one")
        const done = await this.callAction("shell", { command: "COMMAND", description: "wait" })
        console.log(done.stdout.trim())
      }
    }
    run A.go({})
    """


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# Each with the exit code of who ends by it; only the last is nothing that can be dealt with.
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -9)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_the_command_and_its_children(project: Project, number: signal.Signals, code: int) -> None:
    """No process is left behind; the journal says interrupted, and the run goes on from there."""
    project.write("main.koi", PROGRAM.replace("COMMAND", COMMAND))
    words = forks.koi("run", "--allow", "shell", "main.koi")
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        end_s = time.monotonic() + LIMIT_S
        while not (project.folder / "pids").exists():
            assert process.poll() is None
            assert time.monotonic() < end_s
            time.sleep(0.01)
        pids = [int(pid) for pid in (project.folder / "pids").read_text().split()]
        os.kill(process.pid, number)
        out, _ = process.communicate(timeout=LIMIT_S)
    assert (code, "one\n") == (process.returncode, out)
    while not all(map(is_gone, pids)):  # the system takes its time
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert "interrupted" in project.koi("runs", "list").stdout
    project.write("go", "")
    done = project.koi("resume", "--quiet", "--on-doubt", "retry")

    assert (0, "done\n") == (done.returncode, done.stdout), done.stderr


BESIDE = """
    role R { can execute }
    agent A : R { on go(x: Json) { playbook "Serve in the background." } }
    agent Main : R { on start() { console.log((await A.go({})).commands) } }
    run Main.start()
    """
LIST = {"intent": "list_commands", "id": "all"}
LISTED = {"batch": [LIST, {"intent": "return", "data": {"commands": "${all.output.commands}"}}]}


def test_a_command_in_the_background_does_not_outlive_a_kill(project: Project) -> None:
    """After SIGKILL nothing is left of it; a run that goes on lists it as lost, and its agent hears of that once."""
    start = "setsid sleep 600 & echo $$ $! > pids.new; mv pids.new pids; echo up; wait"
    project.write("main.koi", BESIDE)
    answers = [
        {"intent": "shell", "command": start, "description": "d", "until": "up"},
        {"intent": "shell", "command": "test -e go || sleep 600", "description": "d"},
        LISTED,
    ]
    project.write("answers.json", json.dumps(answers))
    words = forks.koi("run", "--quiet", "--allow", "shell", "--answers", "answers.json", "main.koi")
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        end_s = time.monotonic() + LIMIT_S
        while "shell#2" not in "".join(path.read_text() for path in project.folder.glob(".koi/runs/*.jsonl")):
            assert process.poll() is None
            assert time.monotonic() < end_s
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=LIMIT_S)
    pids = [int(pid) for pid in (project.folder / "pids").read_text().split()]
    while not all(map(is_gone, pids)):  # the system takes its time
        assert time.monotonic() < end_s
        time.sleep(0.01)
    (project.folder / "go").touch()

    resumed = project.koi("resume", "last", "--on-doubt", "retry")

    assert "command: 1,\n    state: 'lost'" in resumed.stdout, resumed.stderr
    journal = "".join(path.read_text() for path in project.folder.glob(".koi/runs/*.jsonl"))
    assert 1 == journal.count('"kind":"steered"')
