"""The tasks of the bench of models, and how what comes of one is judged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.models.tasks import ACTIONS, ANSWERS, TASKS, Task
from benchmarks.models.trial import DEFAULT_LIMITS, Setup, Trial, handler_of, run_trial
from tests.llm.server import Answer, ModelServer

NAMES = [task.name for tasks in TASKS.values() for task in tasks]
PRINT, DELEGATE = ACTIONS[0], next(task for task in ACTIONS if task.name == "delegate")
RETURN = '{"intent":"return"}'
ASK_COOK = '{"batch":[{"actionType":"delegate","intent":"cook::suggest","data":{"guests":4},"id":"a"}]}'


def attempt(task: Task, *answers: Answer | str, folder: Path, transport: str = "text") -> Trial:
    """One trial with a server that gives some answers."""

    async def work() -> Trial:
        async with ModelServer(answers) as server:
            return await run_trial(task, "actions", Setup(f"{server.url}/v1", "m", transport), folder, DEFAULT_LIMITS)

    return asyncio.run(work())


def test_there_are_forty_tasks() -> None:
    """Twenty of each kind, each with a name of its own."""
    assert [20, 20] == [len(ANSWERS), len(ACTIONS)]
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("kind", TASKS)
def test_the_tasks_compile(kind: str, tmp_path: Path) -> None:
    """Each is a program with the handler that is called; results that are compared have a type."""
    for task in TASKS[kind]:
        handler = handler_of(task, tmp_path)

        assert handler.playbook
        assert (handler.result is None) == (task.type == "")
        assert task.prompt.count("${") == 0


@pytest.mark.parametrize(
    ("task", "answers", "is_right"),
    [
        (PRINT, ('{"batch":[{"intent":"print","message":"Hello, Ada!"},{"intent":"return"}]}',), True),
        (PRINT, ('{"batch":[{"intent":"print","message":"Hello, Bob!"},{"intent":"return"}]}',), False),
        (PRINT, (RETURN,), False),
        (
            ACTIONS[1],
            ('{"batch":[{"intent":"print","message":"one"},{"intent":"print","message":"two"},' + RETURN + "]}",),
            True,
        ),
        (DELEGATE, (ASK_COOK, '{"intent":"return","data":{"meal":"${a.output}"}}'), True),
        (DELEGATE, ('{"intent":"return","data":{"meal":"stew"}}',), False),
    ],
)
def test_only_the_right_effects_count(task: Task, answers: tuple[str, ...], is_right: bool, tmp_path: Path) -> None:
    """What a task prints and returns is compared exactly."""
    trial = attempt(task, *answers, folder=tmp_path)

    assert (is_right, "", ("text",)) == (trial.is_right, trial.error, trial.ways)
    assert trial.requests == len(answers)


@pytest.mark.parametrize("answer", ["I would rather not.", Answer(status=401)])
def test_a_trial_that_fails_says_why(answer: Answer | str, tmp_path: Path) -> None:
    """A model that never answers with an action uses up its requests or attempts; a server may refuse its key."""
    trial = attempt(PRINT, answer, folder=tmp_path)

    assert not trial.is_right
    assert trial.error
    assert trial.requests <= DEFAULT_LIMITS.requests


def test_the_way_of_asking_is_observed(tmp_path: Path) -> None:
    """The body of the request says it, not the option."""
    returns = Answer(pieces=(RETURN,))
    ways = {name: attempt(PRINT, returns, folder=tmp_path, transport=name).ways for name in ("tools", "auto")}

    assert {"tools": ("tools",), "auto": ("text",)} == ways
