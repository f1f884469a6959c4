"""Approval by the person: what is allowed is not asked about, and what is allowed for always is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from koi_lang.runtime.guards.permissions import Permission, Permissions
from koi_lang.runtime.host import Host, NobodyToAskError, visible

# Whether something may be done: the person or a rule allows it, the person does not, or there is nobody to ask.
Verdict = Literal["allowed", "refused", "unanswered"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What the person is asked to allow.

    Attributes:
        what: a clause that follows on "wants to".
        detail: why, or with what.
        agent: its name; empty where the program as a whole asks.
        permission: what is allowed with it for always; None where every time has to be asked about.
    """

    what: str
    detail: str
    agent: str
    permission: Permission | None = None


async def request_approval(host: Host, permissions: Permissions, request: ApprovalRequest) -> Verdict:
    """Have the person decide, unless a rule has done so. Nothing in the texts can hide what is asked for."""
    permission = request.permission
    if permission is not None and permissions.is_allowed(permission):
        return "allowed"
    try:
        answer = await host.approve(visible(request.what), visible(request.detail), request.agent)
    except NobodyToAskError:
        return "unanswered"
    if answer == "always" and permission is not None:
        permissions.allow(permission.rule)
    return "allowed" if answer in ("yes", "always") else "refused"
