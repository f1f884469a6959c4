"""A request for approval as a form that a client shows, and its answers as a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, visible, wish

DECISION, REASON = "decision", "reason"
YES, ALWAYS, NO = "yes", "yes, from now on", "no"
MEANINGS: Mapping[str, Approval] = {YES: "yes", ALWAYS: "always", NO: "no"}


def form_of(request: ApprovalRequest) -> dict[str, Any]:
    """What can be answered, as a JSON Schema."""
    choices = [YES, ALWAYS, NO] if request.always else [YES, NO]
    decision = {"type": "string", "title": "Allow?", "enum": choices}
    reason = {"type": "string", "title": "Why not?", "description": "The model is told it."}
    return {"type": "object", "properties": {DECISION: decision, REASON: reason}, "required": [DECISION]}


def text_of(request: ApprovalRequest) -> str:
    """Who wants to do what on whose behalf, and what would change; no line of that looks like one of ours."""
    detail = f": {visible(request.detail)}" if request.detail else ""
    lines = [f"{visible(wish(request.what, request.agent))}{detail}"]
    if request.chain:
        lines.append(f"asked for by {' → '.join(f'`{visible(name)}`' for name in request.chain)}")
    lines += [f"| {visible(line)}" for line in request.preview.splitlines()]
    if request.always:
        lines.append(f"`{ALWAYS}` allows {visible(request.always)}")
    return "\n".join(lines)


def decision_of(answers: Mapping[str, Any] | None) -> ApprovalDecision:
    """What the answers to the form mean; whatever is no clear yes allows nothing."""
    given = answers or {}
    reason = given.get(REASON)
    answer = MEANINGS.get(str(given.get(DECISION)), "no")
    return ApprovalDecision(answer, reason if isinstance(reason, str) and answer == "no" else "")
