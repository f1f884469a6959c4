"""Recorded runs as tests: they are replayed, and written anew on request."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

from koi_lang.testing.cases import Case
from koi_lang.testing.discovery import collect
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Clerk : Worker {
      on go() {
        console.log("begun at", Date.now())
        const answer = await this.handle("ask", {})
        console.log(answer)
      }
      on ask() { playbook "Return { a: 1 }" }
    }
    run Clerk.go({})
    """


@pytest.fixture
def recorded(project: Project) -> Project:
    """A folder with a program and `tests/first.jsonl`, a run of it."""
    project.write("main.koi", PROGRAM)
    done = project.koi("run", "main.koi", "--rehearse", "--record", "--quiet")
    assert done.returncode == 0, done.stderr
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    (project.folder / "tests").mkdir()
    shutil.copy(journal, project.folder / "tests" / "first.jsonl")
    return project


def case(project: Project, *, update: bool = False) -> Case:
    """The recorded run as a case."""
    (found,) = collect(project.folder / "tests" / "first.jsonl", update)
    return found


def change(project: Project, old: str, new: str) -> None:
    """Change a piece of the program."""
    project.write("main.koi", PROGRAM.replace(old, new))


def test_an_unchanged_program_passes(recorded: Project) -> None:
    """The recorded run, its answers and its clock give the same again; `koi test` finds it."""
    found = recorded.koi("test", "-v")

    assert found.stdout.startswith("passed tests/first.jsonl (")
    assert (0, "") == (found.returncode, found.stderr)


def test_a_changed_program_fails(recorded: Project) -> None:
    """What is different is shown as a diff, with what to do."""
    change(recorded, "begun", "started")

    message = case(recorded).run().message

    assert message.startswith("error: the program does something else than when this run was recorded\n")
    assert '\n- message: "begun at ' in message
    assert '\n+ message: "started at ' in message
    assert message.endswith("`koi test --update` takes what it does now as what is expected.")


def test_an_update_takes_what_is_done_now(recorded: Project) -> None:
    """A recording that was written anew passes from then on; nothing else is left in the folder."""
    change(recorded, "begun", "started")

    updated, then = case(recorded, update=True).run(), case(recorded).run()

    assert (True, True) == (updated.ok, then.ok)
    assert ["first.jsonl"] == [path.name for path in (recorded.folder / "tests").iterdir()]


@pytest.mark.parametrize(
    "new", ['await fetch("http://127.0.0.1:1/").catch(error => 0)\nconst answer', 'throw new Error("oh")\nconst answer']
)
def test_an_update_needs_all_answers(recorded: Project, new: str) -> None:
    """A program that asks for more than was recorded, or fails, is not taken as what is expected."""
    before = (recorded.folder / "tests" / "first.jsonl").read_bytes()
    change(recorded, "const answer", new)

    found = case(recorded, update=True).run()

    assert (False, before) == (found.ok, (recorded.folder / "tests" / "first.jsonl").read_bytes())
    assert "this recording does not lead to the end of the run" in found.message
    assert ["first.jsonl"] == [path.name for path in (recorded.folder / "tests").iterdir()]


def test_a_recording_that_does_not_lead_to_the_end_is_recorded_again(recorded: Project) -> None:
    """The help names the command lines; the recording passes after them."""
    change(recorded, "const answer", "await this.handle('ask', {})\nconst answer")
    help = recorded.koi("test").stdout.rpartition("help: ")[2].splitlines()[0]
    path, *commands = re.findall("`([^`]+)`", help)

    (recorded.folder / path).unlink()
    assert [0, 0] == [recorded.koi(*shlex.split(command)[1:]).returncode for command in commands]
    assert "1 passed" in recorded.koi("test").stdout


def test_other_files_of_that_ending_are_no_tests(project: Project) -> None:
    """Data are left alone; what begins as a journal and cannot be read is a failure."""
    data = project.write("tests/data.jsonl", '{"a": 1}\n')
    cut = project.write("tests/cut.jsonl", '{"journal":1,"run":"1"')

    (broken,) = collect(cut, False)

    assert ([], False) == (collect(data, False), broken.run().ok)
    assert "`cut.jsonl` does not begin as a journal does" in broken.run().message
