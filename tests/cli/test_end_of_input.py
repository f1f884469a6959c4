"""Errors of the end of input at commands, and closed streams."""

from __future__ import annotations

import json
import sys

import pytest

from tests.projects import Project


def test_an_end_of_something_else_is_no_end_of_input(project: Project) -> None:
    """An `EOFError` from anywhere is told as the error that it is, not as somebody's wish to do nothing."""
    script = """
    import sys
    from unittest import mock
    from koi_lang import cli
    from koi_lang.cli import version
    with mock.patch.object(version.command, "callback", side_effect=EOFError("half a file")):
        cli.main(["version"])
    """
    done = project.python(script)

    assert (1, "") == (done.returncode, done.stdout)
    assert "half a file" in done.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("run main.koi >&-", (0, "", "")),
        ("run main.koi 2>&-", (0, "ready\n", "")),
        ("run main.koi <&-", (0, "ready\n", "")),
        ("check gone.koi >&- 2>&- <&-", (2, "", "")),
        ("acp main.koi <&-", (0, "", "")),
    ],
)
def test_a_closed_stream_is_an_empty_one(project: Project, command: str, outcome: tuple[int, str, str]) -> None:
    """Where the shell has closed a stream, nothing comes from there, and what goes there is lost."""
    project.write("main.koi", 'role R { can go }\nagent A : R { on go() { console.log("ready") } }\nrun A.go({})')
    done = project.run("sh", "-c", f"exec {sys.executable} -m koi_lang {command}")

    assert outcome == (done.returncode, done.stdout, done.stderr)


ASKING = """
role Worker { can execute }
agent Main : Worker { on go(args) { playbook "Ask for a name." } }
run Main.go({})
"""


@pytest.mark.parametrize(("questions", "code"), [(1, 0), (2, 75)])
def test_a_question_that_nobody_answers_is_told(project: Project, questions: int, code: int) -> None:
    """A person reads it, too, not the model alone, which might make an answer up; the second one ends the run."""
    project.write("a.koi", ASKING)
    asked = [{"intent": "prompt_user", "question": f"Name {number}?"} for number in range(questions)]
    project.write("answers.json", json.dumps([*asked, {"intent": "return", "data": "Ada"}]))
    done = project.koi("run", "a.koi", "--answers", "answers.json")

    assert code == done.returncode
    assert done.stderr.startswith(
        "nobody answers the question `Name 0?`; Run the program in a terminal, or pipe one line"
    )
    assert (questions > 1) == ("error: nobody answers the question `Name 1?` [E0504]" in done.stderr)
