"""Runs that go on where another model would answer than before."""

from __future__ import annotations

import pytest

from tests.projects import Project

PROGRAM = """
    import tool from "./tool.py"
    role Worker { can execute }
    agent Main : Worker {
      on go(args: Json) {
        console.log(await Main.handle("ask", {}))
        tool.work()
        try { console.log(await Main.handle("ask", {})) } catch (e) { console.log("caught") }
      }
      on ask(args: Json) { playbook "Answer." }
    }
    run Main.go({})
    """
ANSWER = '{"actionType": "direct", "intent": "return", "data": {"text": "from the script"}}'
BEGIN = f"import koi_lang\nkoi_lang.run('main.koi', model=koi_lang.ScriptedModel(['{ANSWER}'] * 2))"


@pytest.fixture
def killed(project: Project) -> Project:
    """A project with a run that was killed after the first answer of a model that only Python knew."""
    project.write("main.koi", PROGRAM)
    project.write("koi.toml", '[models]\ndefault = "rehearsal"')
    project.write("tool.py", "import os\ndef work():\n    os._exit(9)\n")
    done = project.fork_python(BEGIN)
    project.write("tool.py", "def work():\n    pass\n")
    assert (9, "{ text: 'from the script' }\n") == (done.returncode, done.stdout)
    return project


def test_another_model_does_not_answer_unasked(killed: Project) -> None:
    """The run ends with one message, which code of the program cannot catch; nothing was asked of anybody."""
    done = killed.koi("resume", "--on-doubt", "retry")

    assert (2, "") == (done.returncode, done.stdout)
    assert "error: `Main` was answered by `scripted`, and now `rehearsal` would answer" in done.stderr
    assert "koi resume … -m PROVIDER/MODEL" in done.stderr


def test_a_model_that_is_chosen_answers(killed: Project) -> None:
    """With `-m` the run goes on, also after it was refused, and from then on without."""
    killed.koi("resume", "--on-doubt", "retry")

    done = killed.koi("resume", "-m", "rehearsal", "--on-doubt", "retry")

    assert (0, "{}\n") == (done.returncode, done.stdout), done.stderr
