"""Approval by the person: what is allowed is not asked about, and what is allowed for always is kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.guards.permissions import Permission, Permissions
from koi_lang.runtime.host import ApprovalRequest, Host, NobodyAllowsError, NobodyToAskError, visible
from koi_lang.runtime.replay.location import current_path

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something may be done.

    Attributes:
        outcome: the person or a rule allows it, the person or a rule does not, or there is nobody to ask.
        reason: why not, as a clause: what the person has said, or which rule.
    """

    outcome: Literal["allowed", "refused", "denied", "unanswered"]
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        """Whether it may be done."""
        return self.outcome == "allowed"


ALLOWED = Verdict("allowed")
NO, YES = "no", "yes"


async def request_approval(
    host: Host, permissions: Permissions, request: ApprovalRequest, permission: Permission | None = None
) -> Verdict:
    """Have the person decide, unless a rule has done so. Nothing in the texts can hide what is asked for.

    Args:
        permission: what is asked for, and allowed with it for always; None where every time has to be asked about.
    """
    if permission is not None:
        if rule := permissions.denial(permission):
            return Verdict("denied", f"the rule `{rule}` of the person denies it")
        if permissions.is_allowed(permission):
            return ALLOWED
    words = "" if permission is None else permission.lasting_words
    try:
        decision = await host.approve(_as_shown(request, words, permissions.next_request()))
    except NobodyToAskError:
        return Verdict("unanswered")
    if decision.answer == "always" and permission is not None:
        permissions.allow(permission.lasting_rule)
        await _offer_to_keep(host, permissions, permission)
    if decision.answer in ("yes", "always"):
        return ALLOWED
    return Verdict("refused", visible(decision.reason))


async def _offer_to_keep(host: Host, permissions: Permissions, permission: Permission) -> None:
    """Ask whether a rule that was given in an earlier run, too, is to count in every run."""
    kept, rule = permissions.kept, permission.lasting_rule
    if kept is None or not kept.note_given(rule):
        return
    question = f"Allow {visible(permission.lasting_words)} in later runs of this project, too?"
    with suppress(NobodyToAskError):
        if (await host.ask(question, [NO, YES])).strip().casefold() in ("y", YES):
            kept.keep(rule)


async def require_approval(run: RunPort, request: ApprovalRequest, permission: Permission) -> None:
    """Raise PermissionDeniedError unless a rule or the person allows something to be done to files or pages.

    Raises:
        NobodyAllowsError: there is nobody to ask.
    """
    verdict = await request_approval(run.host, run.permissions, request, permission)
    if verdict.is_allowed:
        return
    what = visible(request.what)
    if verdict.outcome == "unanswered":
        access = permission.access
        help = f'`--allow "{access.rule}"` allows it beforehand.' if access else ""
        raise NobodyAllowsError(f"nobody can be asked to let an agent {what}, so it was not done", help=help or None)
    raise PermissionDeniedError(because(f"the person did not allow to {what}", verdict))


def because(told: str, verdict: Verdict) -> str:
    """A refusal with its reason, where one was given."""
    return f"{told}: {verdict.reason}" if verdict.reason else told


def _as_shown(request: ApprovalRequest, always: str, id: str) -> ApprovalRequest:
    """A request in which nothing can hide, with the way that led to it."""
    preview = "\n".join(visible(line) for line in request.preview.splitlines())
    return replace(
        request,
        what=visible(request.what),
        detail=visible(request.detail),
        preview=preview,
        always=visible(always),
        chain=_callers(),
        id=id,
    )


def _callers() -> tuple[str, ...]:
    """The handlers around the one that is running, the outermost first."""
    labels = (label.partition("#")[0] for label in current_path())
    return tuple(label for label in labels if "." in label and "::" not in label)[:-1]
