"""A model that gives each task of a script the answer that it got in Node."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Delta, Request, Usage, stream_text

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
REFERENCE = HERE / "reference.mjs"


def outcome_in_node(script: str) -> Mapping[str, Any]:
    """The calls of a script with their answers, and its value or error, as Node had them."""
    return json.loads((HERE / "outcomes" / f"{script}.json").read_text(encoding="utf-8"))


class TaskModel:
    """Answers by the whole text of the task.

    Attributes:
        tasks: the tasks, in the order in which they arrived, and `requests` the requests of them.
    """

    provider = "tasks"
    model = "tasks"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.tasks: list[str] = []
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer to the task. Raises ProviderError for a task that Node never had."""
        assert request.task is not None
        task = request.task.playbook.strip()
        self.tasks.append(task)
        self.requests.append(request)
        if task not in self._answers:
            raise ProviderError(f"nobody was asked in Node: {task}")
        answer = json.dumps({"intent": "return", "data": self._answers[task]})
        return stream_text(answer, usage=Usage(1000, 10))

    async def aclose(self) -> None:
        """Nothing is held."""
