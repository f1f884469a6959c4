"""A turn as calls of tools and their results, as a model that called them expects to see it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from koi_lang.llm.tools import ToolCall, ToolResult
from koi_lang.runtime.playbook.framing import frame
from koi_lang.runtime.playbook.json_repair import loads
from koi_lang.runtime.playbook.outside_text import flatten_lines
from koi_lang.runtime.playbook.prompting import Feedback
from koi_lang.runtime.playbook.turn import Turn

NOT_CARRIED_OUT = "Not carried out, since one before it failed or ended the playbook."


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """The answer of a turn as calls, as far as they are complete; none where it is no series of them."""
    if turn.request.offer is None:
        return ()
    framed = frame(turn.text)
    calls = () if framed.has_prose else turn.request.offer.set.calls_of(framed.values)
    return tuple(replace(call, arguments=as_object(call.arguments)) for call in calls)


def as_object(arguments: str) -> str:
    """Arguments as JSON that providers read: those that are broken as they were understood, else an empty object."""
    try:
        value = loads(arguments)
        repaired = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(value, dict):
        return "{}"
    try:
        return arguments if json.loads(arguments) == value else repaired
    except ValueError:
        return repaired


def results_of(turn: Turn, count: int, feedback: Sequence[Feedback], *, sees: bool = False) -> tuple[ToolResult, ...]:
    """What came of each of the calls of a turn, then what else is told.

    Args:
        count: of the calls.
        feedback: on the actions of the turn, then on what of it could not be read.
        sees: whether the model is shown the images of results.
    """
    beside = [flatten_lines(each.for_callers or each.text) for each in feedback[len(turn.actions) if count else 0 :]]
    causes = {turn.unread: beside.pop()} if beside and 0 < turn.unread <= count else {}
    results = [_result(turn, number, sees, causes.get(number, "")) for number in range(1, count + 1)]
    return (*results, *map(ToolResult, beside))


def _result(turn: Turn, number: int, sees: bool, cause: str) -> ToolResult:
    """What came of the actions in one value of the answer, and why the rest of it could not be read."""
    done = [action for action, value in zip(turn.actions, turn.values, strict=False) if value == number]
    if not done:
        return ToolResult(cause or NOT_CARRIED_OUT, is_error=True)
    lines = [flatten_lines(action.feedback.text) for action in done]
    text = "\n".join([*lines, cause] if cause else lines)
    images = tuple(image for action in done for image in action.feedback.images) if sees else ()
    return ToolResult(text, bool(cause) or any(action.error is not None for action in done), images)
