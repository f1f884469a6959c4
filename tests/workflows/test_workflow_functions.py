"""What scripts say of their agents, and what is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.program.error_report import explain
from tests.running import RecordingHost
from tests.workflows.answering import TaskModel
from tests.workflows.running import run_script

REVIEWER = """---
name: reviewer
description: Reads changes
tools: Read, Grep
---
You read like an editor.
"""


def run_text(
    folder: Path, script: str, answers: Mapping[str, Any], *said: str
) -> tuple[object, TaskModel, RecordingHost]:
    """The value of a script, the model that its agents asked, and the person."""
    path, model, host = folder / "main.js", TaskModel(answers), RecordingHost(list(said))
    path.write_text(script, encoding="utf-8")
    return run_script(path, folder, model, host), model, host


def failure_of(folder: Path, script: str, answers: Mapping[str, Any], *said: str) -> str:
    """The message that a script ends with."""
    with pytest.raises(KoiError) as caught:
        run_text(folder, script, answers, *said)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{ lable: 'x' }", "`agent` has no option `lable`"),
        ("{ isolation: 'worktree' }", "`isolation: 'worktree'` is not supported"),
        ("{ agentType: 'nobody' }", "there is no agent `nobody` in `.claude/agents`"),
        ("{ schema: 'text' }", "the type of a result is a JSON Schema, not 'text'"),
        ("{ effort: 'huge' }", "`agent` knows no effort 'huge'"),
    ],
)
def test_unknown_options_are_refused(tmp_path: Path, options: str, message: str) -> None:
    """A script does not go on with an agent that is not what it asked for."""
    assert message in failure_of(tmp_path, f"return await agent('one', {options})", {"one": "1"})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import fs from 'node:fs'\nreturn 1", "main.js:1` imports something, which workflow scripts cannot"),
        ("// a\nconst fs = require('fs')", "main.js:2` imports something, which workflow scripts cannot"),
        ("return await parallel([agent('one')])", "`parallel` takes functions, and item 1 is none"),
        ("return await parallel('abc')", "a stage takes an array"),
    ],
)
def test_what_scripts_cannot_do_is_said(tmp_path: Path, script: str, message: str) -> None:
    """Imports have their place in the script, and a promise in the place of a function is no failed task."""
    assert message in failure_of(tmp_path, script, {"one": "1"})


def test_messages_show_places_in_the_script(tmp_path: Path) -> None:
    """Not those of the library that it calls, nor what begins it."""
    with pytest.raises(KoiError) as caught:
        run_text(tmp_path, "// a\nconst found = 1\nreturn await agent('one', { lable: found })", {})
    told = explain(caught.value, str(tmp_path))

    assert ("main.js:3:", 1, False) == (told.split(" --> ")[1][:10], told.count(" --> "), "workflow.koi" in told)


def test_a_task_without_a_schema_gives_a_text(tmp_path: Path) -> None:
    """Whatever the agent returns: other values are written as JSON."""
    script = "return [await agent('one'), await agent('two'), await agent('three')]"

    assert ["1", '{"a": 2}', ""] == run_text(tmp_path, script, {"one": "1", "two": {"a": 2}, "three": None})[0]


def test_an_agent_of_the_folder_has_its_instructions(tmp_path: Path) -> None:
    """Its text stands before the task, and tools that only read leave it no other permissions."""
    place = tmp_path / ".claude/agents/reviewer.md"
    place.parent.mkdir(parents=True)
    place.write_text(REVIEWER)
    task = "You read like an editor.\n\nRead it."
    value, model, _ = run_text(tmp_path, "return await agent('Read it.', { agentType: 'reviewer' })", {task: "fine"})

    assert ("fine", [task]) == (value, model.tasks)
    assert "write_file" not in model.requests[0].system


def test_a_failed_agent_is_null_and_is_reported(tmp_path: Path) -> None:
    """One that never gives a value of its schema leaves null, with a line for the person."""
    script = "return [await agent('one', { label: 'first', schema: { type: 'integer' } }), await agent('two')]"
    value, _, host = run_text(tmp_path, script, {"one": "none", "two": "2"})

    assert [None, "2"] == value
    assert host.logged[0].startswith("first: failed: ")


def test_an_outage_ends_the_run(tmp_path: Path) -> None:
    """A failure of the provider is that of all agents: the run can be resumed, and nothing is called done."""
    script = "return await parallel([() => agent('one'), () => agent('nobody knows')])"

    assert "nobody was asked in Node: nobody knows" in failure_of(tmp_path, script, {"one": "1"})


STAGE = "const n = 20; return (await parallel(Array.from({ length: n }, (_, i) => () => agent(`task ${i}`)))).length"
TASKS = {f"task {number}": "x" for number in range(20)}


def test_a_large_stage_asks_first(tmp_path: Path) -> None:
    """The person says whether it begins; where nobody can be asked and no limit is in the way, it does."""
    value, model, _ = run_text(tmp_path, STAGE, TASKS, "yes")

    assert (20, 20) == (value, len(model.tasks))
    assert "the stage of 20 tasks was not begun" in failure_of(tmp_path, STAGE, TASKS, "no")
    assert 20 == run_text(tmp_path, STAGE, TASKS)[0]


def test_a_stage_that_a_limit_would_not_pay_for_is_not_begun(tmp_path: Path) -> None:
    """Tasks that have ended tell what the others will take: with nobody to ask, none of them begins."""
    path, model = tmp_path / "main.js", TaskModel({"first": "1", **TASKS})
    path.write_text(f"await agent('first'); {STAGE}")
    with pytest.raises(KoiError, match="the stage was not begun: 20 tasks at once, about"):
        run_script(path, tmp_path, model, RecordingHost(), limits={"tokens": 10_000})

    assert ["first"] == model.tasks


def test_a_script_runs_another(tmp_path: Path) -> None:
    """`workflow` gives the value of a script of the folder, with its arguments."""
    place = tmp_path / ".claude/workflows/inner.js"
    place.parent.mkdir(parents=True)
    place.write_text("export const meta = { name: 'inner' }\nreturn await agent(`about ${args.topic}`)")
    script = "return [await workflow('inner', { topic: 'tea' }), await workflow({ scriptPath: 'other.js' })]"
    (tmp_path / "other.js").write_text("return 5")

    assert ["all", 5] == run_text(tmp_path, script, {"about tea": "all"})[0]
    assert "there is no workflow `.claude/workflows/iner.js`" in failure_of(tmp_path, "await workflow('iner')", {})
