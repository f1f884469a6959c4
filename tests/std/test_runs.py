"""`std/runs` and `koi reflect`: what recorded runs came to, told by their journals alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.std.runs import actions_in, forecasts_in
from tests.journal.commands import Commands
from tests.journal.conftest import koi as koi

PROGRAM = """
import "std/code"
role W { can write, can execute }
agent Main : W { on go(args: Json) { playbook "Do the work." } }
run Main.go({})
"""
ANSWERS = [
    {"intent": "write_file", "path": "a.txt", "content": "x"},
    {"intent": "write_file", "path": "b.txt", "content": "x"},
    {"intent": "shell", "command": "rm -rf x", "description": "why"},
    {"intent": "shell", "command": "false --now", "description": "why"},
    {"intent": "return", "data": {}},
]


@pytest.fixture
def recorded(koi: Commands) -> Commands:
    """A run that wrote two files, ran a command that failed, and was refused another one."""
    koi.record(PROGRAM, ANSWERS, "--allow", "write:**", "--allow", "run:false*")
    return koi


def rows(koi: Commands, about: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    found: list[dict[str, Any]] = json.loads(koi("reflect", about, "--json").out)
    return found


def test_outcomes_are_told(recorded: Commands) -> None:
    """By runs and by actions; a file that was put back makes its action undone, and no other."""
    runs, actions = rows(recorded, "today")
    assert (1, 1) == (runs["n"], runs["kept"])
    assert (5, 3, 0, 1, 1) == tuple(actions[name] for name in ("n", "kept", "undone", "refused", "failed"))
    (recorded.folder / "b.txt").write_text("somebody else")
    recorded("undo", "--yes")
    runs, actions = rows(recorded, "week")

    assert (0, 1) == (runs["kept"], runs["undone"])
    assert (2, 1) == (actions["kept"], actions["undone"])


def test_a_run_whose_last_action_was_refused(koi: Commands) -> None:
    """Is refused, however it ended; what words a lesson of it is no run of its own."""
    koi.record(PROGRAM, [ANSWERS[2], {"intent": "print", "message": "not done"}, ANSWERS[-1]])
    runs, actions = rows(koi, "today")
    (path,) = store.journals(koi.folder)
    words = json.loads(path.read_text().splitlines()[0])
    (path.parent / "0000aaaa.jsonl").write_text(json.dumps({**words, "words": ["memory", "lessons"]}) + "\n")

    assert (1, 0, 1, 1) == (runs["n"], runs["kept"], runs["refused"], actions["refused"])
    assert runs == rows(koi, "today")[0]


def test_tools_are_told(recorded: Commands) -> None:
    """Calls, failures by kind, and a time that was measured."""
    by_tool = {row["tool"]: row for row in rows(recorded, "tools")}

    assert (2, "none") == (by_tool["write_file"]["calls"], by_tool["write_file"]["failures"])
    assert {"unsuccessful 1", "not allowed unattended 1"} == set(by_tool["shell"]["failures"].split(", "))
    assert 0 < by_tool["write_file"]["median s"] < 60


def test_trust_is_told_by_topic(recorded: Commands) -> None:
    """What was done without asking and has changed something; no advice is given for a few."""
    assert [("write_file", 2, "100%", "no data under 20")] == [tuple(row.values()) for row in rows(recorded, "trust")]


def test_what_failed_says_nothing_of_trust_unless_it_changed_a_file(koi: Commands) -> None:
    """An edit that does not fit leaves nothing to keep, and so does one that changes nothing."""
    answers = [
        {"intent": "write_file", "path": "a.txt", "content": "x"},
        {"intent": "edit_file", "path": "a.txt", "before": "nowhere", "after": "y"},
        {"intent": "edit_file", "path": "a.txt", "before": "x", "after": "x"},
        {"intent": "shell", "command": "touch b.txt && false", "description": "why"},
        {"intent": "shell", "command": "false", "description": "why"},
        ANSWERS[-1],
    ]
    koi.record(PROGRAM, answers, "--allow", "write:**", "--allow", "run")

    assert [("touch", 1, "0%"), ("write_file", 1, "100%")] == [tuple(row.values())[:3] for row in rows(koi, "trust")]


def test_advice_needs_twenty(koi: Commands) -> None:
    """Then the share that was kept decides."""
    answers = [{"intent": "write_file", "path": f"{n}.txt", "content": "x"} for n in range(20)]
    koi.record(PROGRAM, [*answers, ANSWERS[-1]], "--allow", "write:**")

    assert ["act"] == [row["advice"] for row in rows(koi, "trust")]
    koi("undo", "--yes")
    assert ["ask"] == [row["advice"] for row in rows(koi, "trust")]


def test_nothing_recorded_is_no_error(koi: Commands) -> None:
    """An empty folder has nothing to tell, and a journal that cannot be read is left out."""
    for about in ("today", "tools", "trust", "votes"):
        done = koi("reflect", about)
        assert (0, "", "no run was recorded in that time\n") == (done.code, done.out, done.err)
    (koi.folder / ".koi" / "runs").mkdir(parents=True)
    (koi.folder / ".koi" / "runs" / "broken.jsonl").write_text("no journal\n")

    assert "[]\n" == koi("reflect", "--json").out


def entry(n: int, kind: str, path: tuple[str, ...], agent: str = "", **data: Any) -> JournalEntry:
    """An entry of a journal."""
    return JournalEntry(n=n, ts=float(n), kind=kind, path=path, agent=agent, data=data)


def test_the_wait_for_the_person_is_no_time_of_the_action() -> None:
    """And an action that never ended is unfinished."""
    path = ("A.go#1", "shell#1")
    entries = [
        entry(1, "begun", path, "A", intent="shell", id="", fields={"command": "ls -l"}, unsafe=True),
        entry(2, "approval_requested", path, "A"),
        entry(12, "approval_given", path, "A"),
        entry(13, "done", path, "A", result={"exitCode": 0}),
        entry(14, "begun", ("A.go#1", "shell#2"), "A", intent="shell", id="", fields={}),
    ]
    action, other = actions_in(entries)

    assert ("unfinished", "", 0.0) == (other["outcome"], other["error"], other["seconds"])
    assert (2.0, True, "ls", "kept") == (action["seconds"], action["asked"], action["topic"], action["outcome"])


def test_votes_and_grades_are_forecasts() -> None:
    """Abstentions are none; votes of one request count as those of several."""
    path = ("DeliberationMember.vote#1",)
    vote = {"verdict": "caveat", "reason": "", "conditions": []}
    together = [{"member": "scholar", "verdict": "block"}, {"member": "empath", "verdict": "abstain"}]
    grades = [{"name": "a", "score": 0.5}, {"name": "b", "score": 1}]
    entries = [
        entry(1, "handler_started", path, "DeliberationMember", event="vote", args={"member": "guardian"}),
        entry(2, "handler_ended", path, "DeliberationMember", event="vote", result=vote),
        entry(3, "handler_ended", ("x",), "DeliberationMember", event="voteForAll", result={"votes": together}),
        entry(4, "begun", ("A.go#1", "shell#1"), "A", intent="shell", id=""),
        entry(5, "handler_ended", ("y",), "RubricJudge", event="grade", result={"dimensions": grades}),
    ]

    assert [("guardian", 1.0), ("scholar", 0.0), ("judge", 0.75)] == [tuple(each) for each in forecasts_in(entries)]


@pytest.mark.parametrize(
    ("agent", "intent"), [("Council", "deliberation.consent"), ("Futures", "return"), ("DeliberationMember", "return")]
)
def test_what_was_never_tried_has_no_outcome(agent: str, intent: str) -> None:
    """A block does not prove itself right, neither does a question that was answered with no, nor a simulation."""
    path = ("DeliberationMember.vote#1",)
    entries = [
        entry(1, "handler_started", path, "DeliberationMember", event="vote", args={"member": "guardian"}),
        entry(2, "handler_ended", path, "DeliberationMember", event="vote", result={"verdict": "block"}),
        entry(3, "begun", ("x",), agent, intent=intent),
    ]

    assert [] == list(forecasts_in(entries))


def test_forecasts_are_held_against_outcomes(koi: Commands) -> None:
    """From ten cases on, as the mean of squared errors."""
    program = """
    import "std/deliberation"
    import "std/files"
    role R { can execute, can write }
    agent Main : R {
      on go(args: Json) {
        for (let n = 0; n < 10; n++) await deliberate("Rename a test", { cheap: true })
        await writeFile("renamed", "x")
      }
    }
    run Main.go({})
    """
    lines = [("guardian", "approve"), ("scholar", "block"), ("empath", "approve"), ("economist", "approve")]
    votes = [{"member": name, "verdict": verdict, "reason": "x", "conditions": []} for name, verdict in lines]
    done = koi.record(program, [{"votes": votes}] * 10, "--allow", "write:**")
    assert 0 == done.code, done.err

    assert {"guardian": 0.0, "scholar": 1.0, "empath": 0.0, "economist": 0.0} == {
        row["by"]: row["brier"] for row in rows(koi, "votes")
    }


PROGRAM_OF_RUNS = """
import "std/runs"
role Reader { can read }
agent Main : Reader {
  on go(args: Json) {
    const [first] = await runs()
    console.log(first.program, await outcomeOf(first.id), (await actionsOf(first.id)).map(each => each.outcome))
    for (const bad of ["nope", 7]) { try { await outcomeOf(bad) } catch (error) { console.log(error.message) } }
    try { await runs({ since: "soon" }) } catch (error) { console.log(error.message) }
  }
}
run Main.go({})
"""


def test_programs_look_at_runs(recorded: Commands) -> None:
    """The same by functions; what is no run is an error."""
    recorded.project.write("look.koi", PROGRAM_OF_RUNS)
    done = recorded("run", "look.koi")

    assert 0 == done.code, done.err
    first, *errors = done.out.splitlines()
    assert "main.koi kept [ 'kept', 'kept', 'refused', 'failed', 'kept' ]" == first
    assert ["7 is no id of a run", "`since` is 'soon'"] == errors[1:]
    assert "`nope`" in errors[0]


@pytest.mark.thorough
def test_five_hundred_runs_take_a_second(recorded: Commands) -> None:
    """Of CPU, for each table."""
    (journal,) = recorded.journals()
    text = journal.read_text()
    for n in range(500):
        id = f"{n:012x}"
        journal.with_name(f"{id}.jsonl").write_text(text.replace(journal.stem, id))
    began = time.process_time()
    recorded("reflect", "week")

    assert time.process_time() - began < 1.5
