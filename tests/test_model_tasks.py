"""The tasks of the bench of models, and how what comes of one is judged."""

from __future__ import annotations

from benchmarks.models.tasks import ACTIONS, ANSWERS, TASKS

NAMES = [task.name for tasks in TASKS.values() for task in tasks]


def test_there_are_forty_tasks() -> None:
    """Twenty of each kind, each with a name of its own, and every value of its prompt in place."""
    assert [20, 20] == [len(ANSWERS), len(ACTIONS)]
    assert len(NAMES) == len(set(NAMES))
    assert not [task.name for task in (*ANSWERS, *ACTIONS) if "${" in task.prompt]
