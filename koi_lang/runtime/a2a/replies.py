"""Messages and tasks of the A2A protocol, parsed from JSON for the caller."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.errors import AgentError

WORKING = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
DONE, ASKING = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
WHY = {
    "TASK_STATE_FAILED": "has failed",
    "TASK_STATE_REJECTED": "does not do that",
    "TASK_STATE_CANCELED": "was cancelled",
    "TASK_STATE_AUTH_REQUIRED": "wants to know who asks",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """How far a task has got; a lone message is one that is done.

    Attributes:
        value: what came of it, a JSON value; the words of the agent while it is not done.
    """

    state: str
    value: Any
    task: str = ""
    context: str = ""

    @property
    def is_working(self) -> bool:
        """Whether there is more to come without any doing."""
        return self.state in WORKING

    @property
    def text(self) -> str:
        """The reply as text for people."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"state": self.state, "value": self.value, "task": self.task, "context": self.context}


def reply_of(result: Any, address: str) -> Reply:
    """The reply of a server. Raises AgentError where it is no message and no task."""
    found = result if isinstance(result, Mapping) else {}
    if isinstance(message := found.get("message"), Mapping):
        return Reply(DONE, value_of(message.get("parts")), "", _text(message.get("contextId")))
    task = found.get("task", found)
    status = task.get("status") if isinstance(task, Mapping) else None
    if not isinstance(status, Mapping) or not _text(task.get("id")) or not _text(status.get("state")):
        raise AgentError(f"`{address}` answers with neither a message nor a task")
    words = status.get("message")
    value = value_of(words.get("parts")) if isinstance(words, Mapping) else ""
    parts = [part for artifact in _records(task.get("artifacts")) for part in _records(artifact.get("parts"))]
    is_done = status["state"] == DONE and parts
    return Reply(status["state"], value_of(parts) if is_done else value, task["id"], _text(task.get("contextId")))


def value_of(parts: Any) -> Any:
    """Parts as one value: the data where there is one piece of it, a list of several, else all texts."""
    found = _records(parts)
    data = [part["data"] for part in found if "data" in part]
    if data:
        return data[0] if len(data) == 1 else data
    return "\n".join(_text_in(part) for part in found)


def _text_in(part: Mapping[str, Any]) -> str:
    """The text of a part; of a file its name or address, since nothing is fetched unasked."""
    return _text(part.get("text")) or _text(part.get("url")) or _text(part.get("filename"))


def _records(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
