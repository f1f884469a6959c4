"""`koi think`: a task is weighed before it is done, and a block touches nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pexpect
import pytest

import koi_lang
from koi_lang.runtime.journal import reader, store
from koi_lang.runtime.journal.entries import JournalEntry
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

MEMBERS = ("guardian", "economist", "empath", "scholar", "strategist")
TASK = "delete the staging database"
WRITE = {
    "intent": "call_skill",
    "skill": "CodeEditing",
    "function": "write_file",
    "input": {"path": "done.txt", "content": "done\n"},
}
FUTURE = {"title": "Lost", "consequence": "Data is gone.", "cost": "a day", "dissent": "the guardian"}


def vote(verdict: str, *conditions: Mapping[str, Any]) -> dict[str, Any]:
    """A vote as a member returns it."""
    return {"verdict": verdict, "reason": f"I say {verdict}.", "conditions": list(conditions)}


def answers(project: Project, votes: Mapping[str, Any], *work: Any) -> str:
    """The file with answers of members, by their names; `others` is for the rest."""
    said = {f"You are the {name}": [votes.get(name, votes["others"])] for name in MEMBERS}
    more = {"Carry out this task": list(work), "This task will not": [{"futures": [FUTURE, FUTURE]}]}
    project.write("answers.json", json.dumps({**said, **more}))
    return "answers.json"


def entries(project: Project) -> list[JournalEntry]:
    """What the last run has recorded."""
    return [line.entry for line in reader.lines(store.find(project.folder, "last")) if line.entry is not None]


def effects(project: Project) -> list[str]:
    """What the last run did that may not be done twice."""
    return [str(entry.data["intent"]) for entry in entries(project) if entry.data.get("unsafe")]


BLOCKED = {
    "the guardian blocks": {"guardian": vote("block"), "others": vote("approve")},
    "the guardian says something else": {"guardian": "I approve of everything! {", "others": vote("approve")},
    "the guardian abstains": {"guardian": vote("abstain"), "others": vote("approve")},
    "a condition of the guardian cannot be read": {
        "guardian": vote("caveat", {"usd": -5}),
        "others": vote("approve"),
    },
    "half a vote": {"guardian": {"verdict": "approve"}, "others": vote("approve")},
    "all block": {"others": vote("block")},
    "a majority blocks": {"guardian": vote("approve"), "others": vote("block")},
}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_block_ends_with_5_and_touches_nothing(project: Project, name: str) -> None:
    """The members are listed, and the error says how to go on."""
    answers(project, BLOCKED[name], WRITE)
    before = sorted(path.name for path in project.folder.iterdir())
    ran = project.koi("think", f"{TASK}; the guardian approves", "--answers", "answers.json", "--allow", "write:**")

    assert 5 == ran.returncode
    assert "guardian: " in ran.stdout
    assert "nothing was done" in ran.stderr
    assert "lift this block once with `--override`" in ran.stderr
    assert [*before, ".koi"] == sorted((path.name for path in project.folder.iterdir()), key=lambda n: n == ".koi")
    assert [] == effects(project)


def test_a_script_that_has_ended_is_the_reason(project: Project) -> None:
    """The line of a member says why there is no vote, as the journal does."""
    project.write("answers.json", "[]")
    ran = project.koi("think", TASK, "--answers", "answers.json")

    assert 5 == ran.returncode
    assert (
        "guardian: block, no vote: its model did not answer: answer 1 was asked for and the script has 0" in ran.stdout
    )


def test_a_guardian_that_abstains_is_said_to(project: Project) -> None:
    """Its line says why it counts as a block."""
    ran = project.koi("think", TASK, "--answers", answers(project, BLOCKED["the guardian abstains"], WRITE))

    assert "guardian: block, no vote: it abstained; I say abstain." in ran.stdout


def test_nothing_is_done_without_a_quorum(project: Project) -> None:
    """Where fewer than three members vote the person is asked, and nobody is there."""
    votes = {"guardian": vote("approve"), "others": vote("abstain")}
    ran = project.koi("do", "--think", TASK, "--answers", answers(project, votes, WRITE), "--allow", "write:**")

    assert "deliberation: ask, since fewer than three voted" in ran.stdout
    assert ran.returncode not in (0, 5)
    assert not (project.folder / "done.txt").exists()


def test_an_approved_task_is_done_under_its_conditions(project: Project) -> None:
    """A condition of a vote holds the work; what none expresses is marked."""
    votes = {"guardian": vote("caveat", {"below": "src"}, {"text": "Be brief."}), "others": vote("approve")}
    denied = [WRITE, {"intent": "return", "data": "tried"}]
    ran = project.koi("think", TASK, "--answers", answers(project, votes, *denied), "--allow", "write:**")

    assert "condition: below src (guardian)\ncondition: text Be brief. (guardian; not enforced)" in ran.stdout
    assert "work: begins" in ran.stdout
    assert not (project.folder / "done.txt").exists()


@pytest.mark.parametrize("words", [("--simulate", TASK), (TASK, "--simulate")])
def test_a_simulation_does_nothing(project: Project, words: tuple[str, str]) -> None:
    """Futures with consequence, cost and dissent are told, wherever the option stands, also for an approved task."""
    votes = {"others": vote("approve")}
    ran = project.koi("think", *words, "--answers", answers(project, votes, WRITE), "--allow", "write:**")

    assert 0 == ran.returncode
    assert 2 == ran.stdout.count("future: Lost\n  consequence: Data is gone.\n  cost: a day\n  dissent: the guardian\n")
    assert "nothing was done" in ran.stdout
    assert [] == effects(project)
    assert not (project.folder / "done.txt").exists()


def test_the_person_lifts_a_block_in_their_own_words(project: Project) -> None:
    """The journal keeps who and why; without a reason the block stays."""
    answers(project, {"guardian": vote("block"), "others": vote("approve")}, {"intent": "return", "data": "done"})
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "KOI_PLAIN": "1"}
    shown = []
    for why in ("", "there is a dump of yesterday"):
        python, *words = forks.koi("think", "--override", TASK, "--answers", "answers.json")
        child = pexpect.spawn(python, words, cwd=project.folder, env=environment, timeout=LIMIT_S, encoding="utf-8")
        child.expect_exact("Nothing leaves it blocked.")
        child.sendline(why)
        child.expect(pexpect.EOF)
        child.wait()
        child.close()
        shown.append((child.exitstatus, child.before or ""))
    (kept,) = [entry.data for entry in entries(project) if entry.path[-1:] == ("deliberation.override#1",)][-1:]

    assert 5 == shown[0][0]
    assert "overridden by" in shown[1][1]
    assert "there is a dump of yesterday" == kept["result"]["why"]
    assert kept["result"]["who"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("think", ""), "there is nothing to do"),
        (("think", "--override", TASK), "nobody is at a terminal"),
        (("do", "--simulate", TASK), "are about a council"),
    ],
)
def test_what_cannot_be_meant(project: Project, words: tuple[str, ...], problem: str) -> None:
    """One clear message, and nothing is run."""
    ran = project.koi(*words)

    assert 2 == ran.returncode
    assert problem in ran.stderr


def test_the_instructions_of_the_person_are_named(project: Project, tmp_path: Path) -> None:
    """`AGENTS.md` of the person is told to the members with the task."""
    (tmp_path / "AGENTS.md").write_text("Never delete what has no backup.")
    answers(project, {"guardian": vote("block"), "others": vote("approve")})
    ran = project.koi("think", TASK, "--answers", "answers.json", KOI_CONFIG_DIR=str(tmp_path))
    events = [entry for entry in entries(project) if entry.kind == "handler_started"]
    asked = next(entry for entry in events if entry.data.get("event") == "vote")

    assert "AGENTS.md" in ran.stdout.splitlines()[0]
    assert "Never delete what has no backup." in asked.data["args"]["task"]
