"""A run in a real pseudo-terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pexpect
import pytest

import koi_lang
from tests import forks
from tests.cli.screens import Shown
from tests.limits import LIMIT_S
from tests.projects import Project

ASKING = '''
    role Worker { can execute }
    agent Greeter : Worker {
      on hello(args: Json) { playbook """Ask the user "Your name?". Print "Hello <answer>". Return {}.""" }
    }
    run Greeter.hello({})
    '''
SLEEPING = """
    role Worker { can execute }
    agent Sleeper : Worker {
      on rest(args: Json) { console.log("resting"); await new Promise(r => setTimeout(r, 60000)) }
    }
    run Sleeper.rest({})
    """


@pytest.fixture
def terminal(project: Project) -> pexpect.spawn:
    """A terminal that runs the program `a.koi` of the project."""
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    command, *words = forks.koi("run", "a.koi")
    return lambda: pexpect.spawn(command, words, cwd=project.folder, env=environment, timeout=LIMIT_S)


def test_a_question_is_shown_and_answered(project: Project, terminal) -> None:
    """The person sees the question, types, and gets the greeting; the exit code is 0."""
    project.write("a.koi", ASKING)

    child = terminal()
    child.expect_exact("Your name?")
    child.sendline("Ada")
    child.expect_exact("Hello Ada")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()

    assert child.exitstatus == 0


def test_a_rehearsal_is_seen_or_asked_for(project: Project, terminal) -> None:
    """At a terminal it stands in for a model, and says so; elsewhere it has to be named, else the run fails."""
    project.write("a.koi", ASKING.replace('Ask the user "Your name?". Print "Hello <answer>"', 'Print "hello"'))
    call = json.dumps({"type": "run", "id": "1"})

    child = terminal()
    child.expect_exact("no model is configured, so a rehearsal follows")
    child.expect_exact("`koi connect` connects a model")
    child.expect_exact("hello")
    child.close()
    refused = project.koi("run", "a.koi")
    named = [project.koi("run", "a.koi", *words) for words in (("--rehearse",), ("-m", "rehearsal"))]

    assert (2, "") == (refused.returncode, refused.stdout)
    assert refused.stderr.startswith("error: no model is configured, and this is no rehearsal")
    assert "no model is configured, and this is no rehearsal" in project.koi("rpc", "a.koi", stdin=f"{call}\n").stdout
    assert [(0, "hello\n")] * 2 == [(each.returncode, each.stdout) for each in named]


def test_the_end_of_input_is_told(project: Project, terminal) -> None:
    """Ctrl-D at a question ends the run with a message instead of a traceback."""
    project.write("a.koi", ASKING)

    child = terminal()
    child.expect_exact("Your name?")
    child.sendeof()
    child.expect_exact("nobody answers the question")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()

    assert child.exitstatus == 70
    assert b"Traceback" not in child.before


def test_ctrl_c_ends_a_run(project: Project, terminal) -> None:
    """An interrupted run says so, and how it goes on, and ends with 130."""
    project.write("a.koi", SLEEPING)

    child = terminal()
    child.expect_exact("resting")
    child.sendintr()
    child.expect_exact("interrupted")
    child.expect(r"`koi resume [0-9a-f]+` goes on\r\n")
    child.expect(pexpect.EOF)
    child.wait()
    child.close()

    assert child.exitstatus == 130


def test_an_unclear_answer_allows_and_forbids_nothing(project: Project) -> None:
    """Who types something else when permission is asked for is asked again; the answer then counts."""
    project.write("a.koi", ASKING)
    shell = {"intent": "shell", "command": "touch made", "description": "to see"}
    project.write("answers.json", json.dumps([{"batch": [shell]}, {"batch": [{"intent": "return", "data": {}}]}]))

    child = Shown(project.folder, ["run", "a.koi", "--answers", "answers.json"], 90, 30)
    shown = child.until("Allow? [y]es, [a]lways, [N]o")
    child.child.send("also check this\r")
    child.until("`also check this` is no answer. Allow? [y]es, [a]lways, [N]o")
    child.child.send("y\r")
    child.child.expect(pexpect.EOF)

    assert shown.startswith("`Greeter` wants to run `touch made`: to see\nAllow?")
    assert (project.folder / "made").exists()
