"""Notes that a run was told are those of its journal, whatever the files say by now."""

from __future__ import annotations

import pytest

from tests.guidance.note_files import write_note
from tests.journal.commands import Commands

PROGRAM = """
role R { can execute }
agent Main : R {
  uses memory
  on go(args: Json) { playbook "Do what the task says." }
}
run Main.go({ task: "deploy it" })
"""
ANSWERS = [{"intent": "print", "message": "working"}, {"intent": "return", "data": {}}]


@pytest.fixture
def recorded(koi: Commands) -> Commands:
    """A run that was told a note, which has changed since."""
    write_note(koi.folder, "deploy", "Deploy to staging first.")
    assert "working\n" == koi.record(PROGRAM, ANSWERS).out
    write_note(koi.folder, "deploy", "Deploy at night.")
    return koi


def texts(koi: Commands) -> list[str]:
    """The notes that the journals of a project hold as told."""
    return [
        note["text"]
        for journal in koi.journals()
        for entry in koi.entries(journal)
        if entry.kind == "done" and entry.path[-1].startswith("guidance#")
        for note in entry.data["result"]["memory"]
    ]


def test_a_replay_is_told_the_same(recorded: Commands) -> None:
    """No difference, and no other request."""
    done = recorded("replay", "last")

    assert (0, "working\n") == (done.code, done.out)
    assert done.err.endswith("nothing is different\n")


def test_a_resumed_run_is_told_the_same(recorded: Commands) -> None:
    """Notes are not searched again; the model is asked the same."""
    recorded.cut_behind("done", "guidance#1")
    done = recorded("resume", "last")

    assert (0, "working\n") == (done.code, done.out), done.err
    assert "told something else" not in done.err
    assert ["Deploy to staging first."] == texts(recorded)


def test_a_new_run_since_an_old_one_is_told_anew(recorded: Commands) -> None:
    """`--since` takes answers over, and searches notes as they are now."""
    done = recorded("run", "--since", "last", "--answers", "answers.json", "main.koi")

    assert 0 == done.code, done.err
    assert "Deploy at night." in texts(recorded)


def test_a_rule_keeps_a_note_from_being_told(koi: Commands) -> None:
    """A file that must not be read stands in no prompt."""
    write_note(koi.folder, "deploy", "Deploy to staging first.")
    koi.project.write("koi.toml", '[permissions]\ndeny = ["read:.agents/memory/dep*"]\n')
    koi.record(PROGRAM, ANSWERS)

    assert [] == texts(koi)
