"""What a person types in a real pseudo-terminal while a program runs."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest
from pexpect import fdpexpect

import koi_lang
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.summary import summarise
from tests import forks
from tests.playbook.playing import act, done
from tests.projects import LIMIT_S, Project

PROGRAM = '''
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { playbook """Do the work.""" } }
    run Main.go({})
    '''
WAIT = act("shell", command="cat go", description="to wait")
WAITING = "Main: shell"
Start = Callable[..., pexpect.spawn]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Runs a program in a terminal; an action that waits goes on when `let_go` is called."""
    project.write("a.koi", PROGRAM)
    os.mkfifo(project.folder / "go")
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    children: list[pexpect.spawn] = []

    def begin(*answers: Any, command: str = "run a.koi --answers answers.json --allow shell") -> pexpect.spawn:
        project.write("answers.json", json.dumps(answers))
        python, *words = forks.koi(*command.split())
        child = pexpect.spawn(python, words, cwd=project.folder, env=environment, timeout=LIMIT_S)
        child.logfile_read = io.BytesIO()
        children.append(child)
        child.expect_exact(WAITING)
        return child

    yield begin
    for child in children:
        child.close(force=True)


def let_go(project: Project) -> None:
    """Have the action that waits end."""
    (project.folder / "go").write_text("")


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A block at whose end a process ends, however that comes."""
    try:
        yield
    finally:
        process.kill()


def test_a_terminal_that_is_not_the_controlling_one(project: Project) -> None:
    """At the terminal of nobody, or of another session, lines steer and answer as ever, and its modes stay."""
    project.write("a.koi", PROGRAM)
    os.mkfifo(project.folder / "go")
    project.write("answers.json", json.dumps([WAIT, act("prompt_user", question="Name?"), done()]))
    ours, theirs = os.openpty()
    usual = termios.tcgetattr(theirs)
    words = [sys.executable, *forks.KOI, *"run a.koi --answers answers.json --allow shell".split()]
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    running = subprocess.Popen(
        words, cwd=project.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    child = fdpexpect.fdspawn(ours, timeout=LIMIT_S)
    with running, ended(running):
        child.expect_exact(WAITING)
        child.send("Use tabs.\n")
        child.expect_exact("will be heard before the next answer")
        modes = termios.tcgetattr(theirs)
        let_go(project)
        child.expect_exact("Name?")
        child.send("Ada\n")
        running.wait(LIMIT_S)
    child.close()
    os.close(theirs)

    assert (0, usual) == (running.returncode, modes)


def test_a_typed_line_steers(project: Project, start: Start) -> None:
    """What is typed while an action runs is heard before the model answers next."""
    child = start(WAIT, act("print", message="done"), done())

    child.sendline("Use tabs.")
    child.expect_exact("will be heard before the next answer")
    let_go(project)
    child.expect_exact("`Main` hears: Use tabs.")
    child.expect_exact("done")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()

    assert child.exitstatus == 0


def test_a_follow_up_can_be_typed(project: Project, start: Start) -> None:
    """`/queue` keeps something for the end, and `/back` takes back what is queued."""
    child = start(WAIT, done(), act("print", message="more"), done())

    child.sendline("/queue never")
    child.expect_exact("will be heard at the end")
    child.sendline("/back")
    child.expect_exact("taken back; never")
    child.sendline("/queue One more.")
    child.expect_exact("will be heard at the end")
    let_go(project)
    child.expect_exact("`Main` hears: One more.")
    child.expect_exact("more")
    child.expect(pexpect.EOF)


def test_a_pause_can_be_typed(project: Project, start: Start) -> None:
    """Between `/pause` and `/continue` the model is not asked."""
    child = start(WAIT, act("print", message="after"), done())

    child.sendline("/pause")
    child.expect_exact("paused")
    let_go(project)
    assert child.expect([pexpect.TIMEOUT, "after"], timeout=0.5) == 0
    child.sendline("/continue")
    child.expect_exact("going on")
    child.expect_exact("after")
    child.expect(pexpect.EOF)


def test_an_abort_can_be_typed(start: Start) -> None:
    """`/abort` ends the run and its processes; what was not heard is told, and the exit code says so."""
    child = start(WAIT, done())

    child.sendline("/nonsense")
    child.expect_exact("there is no command `/nonsense`")
    child.sendline("too late")
    child.expect_exact("will be heard")
    child.sendline("/abort")
    child.expect_exact("nobody has heard: too late")
    child.expect_exact("the run was aborted")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()

    assert child.exitstatus == 130


def test_a_resumed_run_has_heard_the_same(project: Project, start: Start) -> None:
    """A run that is killed after it was steered goes on with the same conversation; nothing is said twice."""
    child = start(WAIT, act("shell", command="echo > begun; cat go", description="to wait"), done(n=1))
    child.sendline("Use tabs.")
    child.expect_exact("will be heard")
    let_go(project)
    child.expect_exact("`Main` hears: Use tabs.")
    end = time.monotonic() + LIMIT_S
    while not (project.folder / "begun").exists() and time.monotonic() < end:
        time.sleep(0.01)
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    (journal,) = store.journals(project.folder)
    while summarise(journal).state == "running" and time.monotonic() < end:  # what was forked ends a little later
        time.sleep(0.01)
    let_go(project)

    resumed = project.koi("resume", "last", "--on-doubt", "skip")
    shown = project.koi("runs", "show", "last").stdout

    assert (0, "") == (resumed.returncode, resumed.stdout), resumed.stderr
    assert (1, 3) == (shown.count(" steered "), shown.count(" model_asked "))


def test_an_answer_is_no_message(project: Project, start: Start) -> None:
    """A line that answers a question goes to whoever asked, and nothing else hears it."""
    question = act("prompt_user", question="Your name?", id="who")
    child = start({"batch": [WAIT, question, act("print", message="Hello ${who.output.answer}")]}, done())

    let_go(project)
    child.expect_exact("Your name?")
    child.sendline("Ada")
    child.expect_exact("Hello Ada")
    child.expect(pexpect.EOF)

    assert b"heard" not in child.logfile_read.getvalue()


def test_what_is_piped_in_steers_nobody(project: Project) -> None:
    """Lines that do not come from a terminal are kept for questions."""
    project.write("a.koi", PROGRAM)
    question = act("prompt_user", question="Your name?", id="who")
    answers = [{"batch": [act("print", message="first"), question]}, act("print", message="end"), done()]
    project.write("answers.json", json.dumps(answers))

    done_ = project.koi("run", "a.koi", "--answers", "answers.json", stdin="Ada\n/abort\n")

    assert ("first\nend\n", 0) == (done_.stdout, done_.returncode)
    assert "heard" not in done_.stderr
