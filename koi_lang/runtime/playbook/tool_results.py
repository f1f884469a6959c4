"""A turn as calls of tools and their results, as a model that called them expects to see it again."""

from __future__ import annotations

from collections.abc import Sequence

from koi_lang.llm.tools import ToolCall, ToolResult
from koi_lang.runtime.playbook.framing import frame
from koi_lang.runtime.playbook.outside_text import flatten_lines
from koi_lang.runtime.playbook.prompting import Feedback
from koi_lang.runtime.playbook.turn import Turn

NOT_CARRIED_OUT = "Not carried out, since one before it failed or ended the playbook."


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """The answer of a turn as calls, as far as they are complete; none where it is no series of them."""
    if turn.request.offer is None:
        return ()
    framed = frame(turn.text)
    return () if framed.has_prose else turn.request.offer.set.calls_of(framed.values)


def results_of(turn: Turn, count: int, beside: Sequence[Feedback], *, sees: bool = False) -> tuple[ToolResult, ...]:
    """What came of each of the calls of a turn, then what else is told.

    Args:
        count: of the calls.
        beside: what is told beside them.
        sees: whether the model is shown the images of results.
    """
    results = [_result(turn, number, sees) for number in range(1, count + 1)]
    return (*results, *(ToolResult(flatten_lines(each.for_callers or each.text)) for each in beside))


def _result(turn: Turn, number: int, sees: bool) -> ToolResult:
    """What came of the actions in one value of the answer."""
    done = [action for action, value in zip(turn.actions, turn.values, strict=False) if value == number]
    if not done:
        return ToolResult(NOT_CARRIED_OUT, is_error=True)
    text = "\n".join(flatten_lines(action.feedback.text) for action in done)
    images = tuple(image for action in done for image in action.feedback.images) if sees else ()
    return ToolResult(text, any(action.error is not None for action in done), images)
