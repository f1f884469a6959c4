"""Texts of a project that a run has used are those of its journal, whatever the files say by now."""

from __future__ import annotations

import pytest

from tests.journal.commands import Commands

PROGRAM = """
role R { can execute }
agent Main : R {
  uses instructions
  uses skills
  on go(args: Json) { playbook "Review it." }
}
run Main.go({})
"""
READ = {"id": "s", "intent": "read_skill", "name": "review"}
ANSWERS = [
    {"batch": [READ, {"intent": "print", "message": "read: ${s.output.text}"}]},
    {"intent": "return", "data": {}},
]


@pytest.fixture
def recorded(koi: Commands) -> Commands:
    """A run that has read instructions and a skill, which have changed since."""
    koi.project.write("AGENTS.md", "Use tabs.\n")
    koi.project.write(".agents/skills/review/SKILL.md", "---\ndescription: Reviews\n---\nLook twice.\n")
    assert "read: Look twice.\n" == koi.record(PROGRAM, ANSWERS).out
    koi.project.write("AGENTS.md", "Use blanks.\n")
    koi.project.write(".agents/skills/review/SKILL.md", "---\ndescription: Other\n---\nLook away.\n")
    return koi


def test_a_replay_is_told_the_same(recorded: Commands) -> None:
    """No difference, and no other request."""
    done = recorded("replay", "last")

    assert (0, "read: Look twice.\n") == (done.code, done.out)
    assert "nothing is different\n" == done.err.partition(", ")[2].partition(", ")[2]


def test_a_resumed_run_is_told_the_same(recorded: Commands) -> None:
    """What was read before is not read again; the model is asked the same."""
    recorded.cut_behind("done", "read_skill#1")
    done = recorded("resume", "last")

    assert (0, "read: Look twice.\n") == (done.code, done.out), done.err
    assert "told something else" not in done.err
    assert "Look away." not in recorded.journal.read_text()


def test_the_texts_stand_in_the_journal(recorded: Commands) -> None:
    """As what came of effects, so that a person sees what a model was told."""
    told = [entry for entry in recorded.entries() if entry.kind == "done" and "guidance" in entry.path[-1]]

    assert [("Use tabs.", "Reviews")] == [
        (
            entry.data["result"]["instructions"][0]["text"],
            next(each["description"] for each in entry.data["result"]["skills"] if each["name"] == "review"),
        )
        for entry in told
    ]
