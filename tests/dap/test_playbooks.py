"""Stops in playbooks: before each action, with what a person may decide there, and at failures."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.dap.client import Client, RefusedError, debugging
from tests.dap.programs import PRINT, TEAM, record, returning, write_team
from tests.projects import Project

ACTION = "Counter.count: "


def journal(project: Project) -> list[dict[str, object]]:
    """The entries of the only run of a folder."""
    (path,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_playbook_stops_before_each_action(project: Project) -> None:
    """Any line of a playbook is a breakpoint of its actions; each shows agent, action, fields, role and budget."""
    path = write_team(project)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        (told,) = client.launch({path: [23]})
        assert (told["verified"], told["line"]) == (True, 22)
        assert told["message"] == "stops before each action of this playbook"
        assert client.stop() == f"breakpoint 22 {ACTION}print"
        shown = client.variables()
        assert (shown["agent"], shown["action"], shown["role"]) == (
            "'Counter'",
            "'print'",
            "{ name: 'Worker', can: [ 'execute' ] }",
        )
        assert shown["fields"] == "{ message: 'counting' }"
        assert shown["budget"].startswith("{\n  spent: { turns: 1, requests: 1") or shown["budget"].startswith(
            "{ spent: { turns: 1"
        )
        assert client.evaluate("args.text") == "'a run is a file'"
        assert [frame["name"] for frame in client.stack()] == [
            f"{ACTION}print", "Counter.count", "Lead.start", "run",
        ]  # fmt: skip
        assert client.go() == f"breakpoint 22 {ACTION}return"
        assert client.go() == "terminated"
        assert client.output() == "counting\n5 words\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ('fields.message = "other"', "other\n5 words\n"),
        ('.fields { message: "new" }', "new\n5 words\n"),
        (".skip", "5 words\n"),
        (".result { shown: true }", "5 words\n"),
    ],
)
def test_a_person_decides_about_an_action(project: Project, command: str, printed: str) -> None:
    """Fields are changed, an action is skipped or answered; a replay without the debugger does the same."""
    path = write_team(project)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [22]})
        client.stop()
        client.evaluate(command)
        if not command.startswith("."):
            client.request("continue", threadId=1)
        assert client.stop() == f"breakpoint 22 {ACTION}return"
        assert client.go() == "terminated"
        assert client.output() == printed

    (run,) = [path.stem for path in (project.folder / ".koi" / "runs").glob("*.jsonl")]
    replayed = project.koi("replay", run)
    assert (replayed.stdout, replayed.returncode) == (printed, 0), replayed.stderr


def test_what_a_person_writes_is_checked_as_the_model_is(project: Project) -> None:
    """Fields of a wrong type, and a result that is not of the declared type, are refused; the model answers again."""
    path = write_team(
        project, {"batch": [PRINT, returning({"words": 5})]}, returning({"words": 6}), returning({"words": 7})
    )

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [22]})
        assert client.stop() == f"breakpoint 22 {ACTION}print"
        client.request("koi/fields", value={})
        assert client.stop() == f"breakpoint 22 {ACTION}return"
        client.request("koi/result", value={"words": "many"})
        assert client.stop() == f"breakpoint 22 {ACTION}return"
        assert client.go() == "terminated"
        assert client.output() == "7 words\n"
    kinds = [entry.get("kind") for entry in journal(project)]
    assert (kinds.count("failed"), kinds.count("action_overridden")) == (2, 2)


def test_a_decision_does_not_widen_a_role(project: Project) -> None:
    """An action that the role does not permit is refused, whatever a person makes of its fields."""
    path = write_team(project, {"intent": "registry_set", "key": "a", "value": 1}, returning({"words": 1}))

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [22]}, filters=["refused"])
        assert client.stop() == f"breakpoint 22 {ACTION}registry_set"
        client.request("koi/fields", value={"key": "b", "value": 2})
        assert client.stop() == f"exception 22 {ACTION}registry_set"
        assert client.request("exceptionInfo", threadId=1)["exceptionId"] == "refused action"
        assert client.go() == f"breakpoint 22 {ACTION}return"
        assert client.go() == "terminated"


def test_nothing_is_decided_about_lines_of_code(project: Project) -> None:
    """Only an action can be skipped; the person is told."""
    path = write_team(project)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [9]})
        assert client.stop() == "breakpoint 9 Lead.start"
        with pytest.raises(RefusedError, match="this is no action of a playbook"):
            client.request("koi/skip")
        assert client.evaluate(".help").startswith("an expression")
        assert client.go() == "terminated"


def failures(client: Client) -> str:
    """What is said of the exception at a stop."""
    about = client.request("exceptionInfo", threadId=1)
    return f"{about['exceptionId']}: {about['description']}"


def test_failures_are_stops(project: Project) -> None:
    """A misfit result and a failed handler stop where they happen, if the person wants that."""
    text = TEAM.replace('return many ? "many" : "few"', 'throw new Error("no report")')
    path = write_team(project, returning({"words": "x"}), returning({"words": 5}), text=text)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: []}, filters=["misfit", "failed"])
        assert client.stop() == f"exception 22 {ACTION}return"
        assert failures(client) == 'misfit result: `words` must be a number, not "x"'
        assert client.go() == "exception 16 Lead.report"
        assert failures(client) == "failed handler: no report"
        assert client.variables()["many"] == "true"
        assert client.go() == "terminated"
        assert "error: no report [E0500]" in client.output("stderr")


def test_steps_follow_the_program_across_agents(project: Project) -> None:
    """Into a send is into the member's playbook, over an action to the next one, out of a playbook to its caller."""
    path = write_team(project)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [8]})
        assert client.stop() == "breakpoint 8 Lead.start"
        assert client.go("stepIn") == f"step 22 {ACTION}print"
        assert client.go("next") == f"step 22 {ACTION}return"
        assert client.go("next") == "step 9 Lead.start"
        assert client.go("next") == "step 10 Lead.start"
        assert client.go("next") == "step 11 Lead.start"
        assert client.go("stepIn") == "step 15 Lead.report"
        assert client.go("stepOut") == "terminated"


def test_one_steps_out_of_a_playbook(project: Project) -> None:
    """Out of a playbook leads past all its further actions."""
    path = write_team(project)

    with debugging(project, "team.koi", "--answers", "answers.json") as client:
        client.launch({path: [22]})
        client.stop()
        client.set_breakpoints(path)
        assert client.go("stepOut") == "step 9 Lead.start"
        assert client.go() == "terminated"


def test_a_recorded_run_is_not_changed(project: Project) -> None:
    """In a recorded run nothing is decided; the person is told what to do instead."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [22]})
        assert client.stop() == f"breakpoint 22 {ACTION}print"
        with pytest.raises(RefusedError, match="what was recorded cannot be changed"):
            client.request("koi/skip")
        with pytest.raises(RefusedError, match="what was recorded cannot be changed"):
            client.evaluate("fields.message = 1")


@pytest.mark.parametrize("where", [22, 10])
def test_another_result_begins_a_branch(project: Project, where: int) -> None:
    """At an action of a recorded run, or behind it, another result goes on as a branch, in its own journal."""
    path = write_team(project, PRINT, returning({"words": 5}))
    run = record(project)
    project.write("answers.json", json.dumps([PRINT, returning({"words": 1})]))

    with debugging(project, run, "--answers", "answers.json") as client:
        client.launch({path: [where]})
        assert client.stop().startswith("breakpoint")
        client.set_breakpoints(path, 16)
        client.evaluate(".result { words: 1 }")
        assert client.stop() == "breakpoint 16 Lead.report"
        assert client.variables()["args"] == "{ words: 1 }"
        assert client.go() == "terminated"
    tree = project.koi("runs", "list", "--json").stdout
    assert f'"parent": "{run}"' in tree or f'"parent":"{run}"' in tree


def test_a_journal_of_somebody_else_has_no_branch(project: Project) -> None:
    """Nothing is done outside for a journal that this machine has not signed, unless the person trusts it."""
    path = write_team(project)
    run = record(project)
    moved = Project(project.folder.with_name("moved"))
    shutil.copytree(project.folder, moved.folder)

    with debugging(moved, run) as client:
        client.launch({path: [10]})
        assert client.stop() == "breakpoint 10 Lead.start"
        with pytest.raises(RefusedError, match="is not gone on with"):
            client.request("koi/branch")
