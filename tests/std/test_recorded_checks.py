"""Checks of a recorded run: what came of them comes again, and nothing is run a second time."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests import forks
from tests.projects import Project
from tests.std.checking import LIMIT_S, wait_until_gone

pytestmark = pytest.mark.usefixtures("tools")

# Leaves a line each time the tests are run.
TESTS = """
    def test_a():
        with open("runs", "a") as file:
            file.write("tests\\n")
    def test_b():
        assert 1 == 2
    """
PROGRAM = """
    import "std/checks"
    role R { can execute }
    agent A : R { on go(args: Json) {
      const tests = await runTests()
      const command = await runCommand("echo command >> runs")
      console.log(tests.ok, tests.passed, tests.failed, tests.findings[0].where, tests.seconds > 0, command.ok)
      await callAction("shell", { command: "test -e go", description: "wait" })
    } }
    run A.go({})
    """
TOLD = "false 1 1 test_x.py:5 true true\n"


def effects(project: Project) -> list[str]:
    """What was run, in order."""
    return (project.folder / "runs").read_text().split()


def journal_of(project: Project) -> str:
    """The id of the run."""
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    return journal.stem


def test_a_replay_runs_nothing(project: Project) -> None:
    """A replay prints the same without tools, without asking, and says that nothing is different."""
    project.write("test_x.py", TESTS)
    project.write("a.koi", PROGRAM)
    first = project.koi("run", "--record", "--allow", "shell", "a.koi")
    assert (TOLD, ["tests", "command"]) == (first.stdout, effects(project)), first.stderr
    (project.folder / "test_x.py").unlink()

    replayed = project.koi("replay", journal_of(project))

    assert (0, True) == (replayed.returncode, TOLD.strip() in replayed.stdout), replayed.stderr
    assert ["tests", "command"] == effects(project)


WAITING = """
    import "std/checks"
    role R { can execute }
    agent A : R { on go(args: Json) {
      const tests = await runTests()
      console.log(tests.passed)
      const second = await runCommand("echo $$ > pids; test -e go || sleep 600; echo second >> runs")
      console.log(second.ok)
    } }
    run A.go({})
    """


def test_a_killed_run_goes_on_behind_its_checks(project: Project) -> None:
    """Killed without a word, a run leaves no command behind, and its resumption does not repeat tests that ended."""
    project.write("test_x.py", TESTS)
    project.write("a.koi", WAITING)
    words = forks.koi("run", "--record", "--allow", "shell", "a.koi")
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        wait_for_file(project)
        os.kill(process.pid, signal.SIGKILL)
    (pid,) = map(int, (project.folder / "pids").read_text().split())
    wait_until_gone(pid)
    project.write("go", "")
    refused = project.koi("resume", journal_of(project))
    resumed = project.koi("resume", "--quiet", "--on-doubt", "retry", journal_of(project))

    assert "`checks.command` had begun and its end is not known" in refused.stderr
    assert (0, "true\n") == (resumed.returncode, resumed.stdout), resumed.stderr
    assert ["tests", "second"] == effects(project)


SLOW_TESTS = """
    import os, pathlib, time
    def test_a():
        pathlib.Path("runs").open("a").write("tests\\n")
        pathlib.Path("pids").write_text(f"{os.getpid()}\\n")
        while not os.path.exists("go"):
            time.sleep(0.05)
    """
TESTING = """
    import "std/checks"
    role R { can execute }
    agent A : R { on go(args: Json) { console.log((await runTests()).ok) } }
    run A.go({})
    """


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_tests_that_were_under_way_are_run_again(project: Project, number: signal.Signals) -> None:
    """Tests do no harm twice: whoever was ended while they ran goes on without a question, when the first are gone."""
    project.write("test_x.py", SLOW_TESTS)
    project.write("a.koi", TESTING)
    words = forks.koi("run", "--record", "--allow", "shell", "a.koi")
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        wait_for_file(project)
        os.kill(process.pid, number)
    wait_until_gone(int((project.folder / "pids").read_text()))
    project.write("go", "")
    resumed = project.koi("resume", "--quiet", journal_of(project))

    assert (0, "true\n") == (resumed.returncode, resumed.stdout), resumed.stderr
    assert ["tests", "tests"] == effects(project)


def wait_for_file(project: Project) -> None:
    """Wait until the command has written down who it is."""
    end_s = time.monotonic() + LIMIT_S
    while not (project.folder / "pids").exists() or not (project.folder / "pids").read_text().strip():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_denied_check_is_denied_again(project: Project) -> None:
    """What nobody allowed is an error with its help, in the run and in its replay."""
    project.write("test_x.py", TESTS)
    project.write("a.koi", PROGRAM)
    denied = project.koi("run", "--record", "a.koi")
    replayed = project.koi("replay", journal_of(project))

    assert (77, False) == (denied.returncode, (project.folder / "runs").exists())
    assert "nobody can be asked to allow `python -m pytest`, so it was not run" in denied.stderr
    assert 'help: `--allow "run:python -m pytest"` allows it beforehand, and so does' in denied.stderr
    assert "Traceback" not in denied.stderr + replayed.stderr


PRINTING = """
    import "std/checks"
    role R { can execute }
    agent A : R { on go(args: Json) {
      const done = await runCommand("echo sk-ant-api03-abcdefghijklmnopqrstuvwxyz01234567; head -c 50000000 /dev/zero")
      console.log(done.ok, done.output.length < 31000)
    } }
    run A.go({})
    """


def test_what_is_recorded_is_bounded(project: Project) -> None:
    """An endless output makes no endless journal, and a secret in it is not in there."""
    project.write("a.koi", PRINTING)
    ran = project.koi("run", "--record", "--allow", "shell", "a.koi")
    text = (project.folder / ".koi" / "runs" / f"{journal_of(project)}.jsonl").read_text()

    assert "true true\n" == ran.stdout, ran.stderr
    assert "abcdefghijklmnopqrstuvwxyz01234567" not in text
    assert [] == [line for line in text.splitlines() if len(line) > 300_000]
    assert "checks.command" in text
