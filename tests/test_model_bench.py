"""The bench of models: its table, other libraries beside it, and a small model that it serves itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.models.beside import output_type_of, type_of
from benchmarks.models.report import table
from benchmarks.models.server import INSTALL, local_server, missing_packages, models_of
from benchmarks.models.tasks import ACTIONS, ANSWERS, Task
from benchmarks.models.trial import (
    DEFAULT_LIMITS,
    GRACE_S,
    MAX_ANSWER_TOKENS,
    Limits,
    Setup,
    Trial,
    handler_of,
    run_trial,
)
from tests.projects import Project

# What the bench must end, and never take for right, whatever model is asked.
LIVE = ["city", "sentiment", "sum", "capital", "print", "ask", "delegate", "state"]


def test_the_table_has_a_line_for_each_way() -> None:
    """Rates by kind, and means of a task."""
    right = Trial("sum", "answers", "text", None, True, 2, 1000, 50, 3.0, ("text",))
    wrong = replace(right, is_right=False, requests=4)
    other = replace(right, by="pydantic-ai", ways=())

    *_, text, beside = table([right, wrong, other]).splitlines()

    assert "| text | 1 of 2 (50%) | – | 3.0 | 1,000 | 50 | 3.0 s | text |" == text
    assert beside.startswith("| pydantic-ai | 1 of 1 (100%) | – |")


@pytest.mark.parametrize("task", ANSWERS, ids=lambda task: task.name)
def test_other_libraries_get_the_same_types(task: Task, tmp_path: Path) -> None:
    """The right result fits the type that is made for pydantic, and a list of nothing known does not."""
    from pydantic import TypeAdapter, ValidationError

    type = TypeAdapter(_type_of_result(task, tmp_path))

    assert task.result == type.dump_python(type.validate_python(task.result), exclude_none=True)
    with pytest.raises(ValidationError):
        type.validate_python([object()])


def test_choices_are_asked_for_in_a_field() -> None:
    """The other library takes no choice of literals by itself."""
    choice = output_type_of({"enum": ["yes", "no"]})

    assert {"value": "yes"} == choice.model_validate({"value": "yes"}).model_dump()


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """No traceback, and what to do."""
    done = Project(tmp_path).fork("-m", "benchmarks.models", "--server", "http://127.0.0.1:9/v1")

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: http://127.0.0.1:9/v1 lists no models: ")
    assert 1 == done.stderr.count("\n")


@pytest.mark.counterpart
def test_a_small_model_does_nothing_wrong_in_silence(tmp_path: Path) -> None:
    """Eight tasks by a model that is wrong most of the time: every call ends, within its limits, and results fit."""
    if missing := missing_packages():
        pytest.skip(f"MISSING ON THIS MACHINE: {', '.join(missing)} ({INSTALL})")
    for task, trial in asyncio.run(_live_trials(tmp_path, limits := replace(DEFAULT_LIMITS, requests=2, time_s=15))):
        assert trial.requests <= limits.requests
        # The tokens of an answer that was cut off when the time was up are estimated.
        assert trial.output_tokens <= limits.requests * MAX_ANSWER_TOKENS or trial.elapsed_s >= limits.time_s
        assert trial.elapsed_s < limits.time_s + GRACE_S
        assert trial.error or not task.type or _fits(task, trial.result, tmp_path), trial


async def _live_trials(folder: Path, limits: Limits) -> list[tuple[Task, Trial]]:
    async with local_server() as server:
        setup, tasks = Setup(server, models_of(server)[0], "auto"), [*ANSWERS, *ACTIONS]
        chosen = [task for task in tasks if task.name in LIVE]
        return [(task, await run_trial(task, "", setup, folder, limits)) for task in chosen]


def _type_of_result(task: Task, folder: Path) -> Any:
    type = handler_of(task, folder).result
    assert type is not None
    return type_of(type.schema)


def _fits(task: Task, result: Any, folder: Path) -> bool:
    """Whether a result is of the type that a task declares, by the rules of another library."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(_type_of_result(task, folder)).validate_json(json.dumps(result), strict=True)
    except ValidationError:
        return False
    return True
