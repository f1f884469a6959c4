"""Votes and conditions for `std/deliberation`: read from what models answer, and held for the work that follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from getpass import getuser
from pathlib import PurePosixPath
from typing import Any, NoReturn, TypedDict

from koi_lang.errors import AgentError, BlockedError, KoiError, ProviderError
from koi_lang.js.calling import apply
from koi_lang.js.errors import thrown
from koi_lang.runtime.agents.resilience import AttemptTimeoutError
from koi_lang.runtime.agents.result_types import ResultTypeError
from koi_lang.runtime.budget.limits import Budget, LimitReachedError, in_time, paid_by
from koi_lang.runtime.context import current
from koi_lang.runtime.guards.access_rules import AccessRule, parse_rule
from koi_lang.runtime.guards.policy import Access, CallConditions, held_to
from koi_lang.runtime.guidance.instructions import read_own_instructions
from koi_lang.runtime.guidance.material import plain_text
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import enter
from koi_lang.std.effects import agent, perform_effect

MAX_TEXT_CHARS = 300
KINDS = ("cannot", "ask", "below", "usd", "until", "text")


class Condition(TypedDict):
    """A condition of a vote.

    Attributes:
        by: the member that set it.
        kind: `cannot`, `ask`, `below`, `usd`, `until`, or `text` for what none of these expresses.
        enforced: whether the runtime holds the work to it.
    """

    by: str
    kind: str
    value: str | float
    enforced: bool


class Override(TypedDict):
    """Who has lifted a block, and why; an empty reason leaves it."""

    who: str
    why: str


class OwnInstructions(TypedDict):
    """The instructions of the person: the path of their file as they write it, and its text."""

    path: str
    text: str


# ---------------------------------------------------------------- votes


def reason_of_missing_vote(error: Any) -> str:
    """Why a member gave no vote, as a clause. Raises again what ends the call or the run around it."""
    exception = thrown(error)
    if not isinstance(exception, Exception):
        raise exception
    if isinstance(exception, LimitReachedError) and exception.is_final():
        raise exception
    if isinstance(exception, LimitReachedError) and exception.broken is not None:
        return f"its model did not answer: {exception.broken.message}"
    if isinstance(exception, LimitReachedError | ResultTypeError):
        return "its answer cannot be read"
    if isinstance(exception, AttemptTimeoutError):
        return "it took too long"
    if isinstance(exception, ProviderError):
        return f"its model did not answer: {exception.message}"
    raise exception


def read_conditions(member: str, given: Any) -> list[Condition]:
    """The conditions of a vote, one for each rule, path, amount, moment and text."""
    found: list[Condition] = []
    objects = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    lists = [(kind, each.get(kind)) for each in objects for kind in KINDS]
    values = [(kind, one) for kind, value in lists for one in (value if isinstance(value, list) else [value])]
    for kind, value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        is_enforced = is_enforceable(kind, value)
        shown = value if is_enforced or kind == "text" else f"{kind} {value}"
        shown = " ".join(plain_text(shown).split())[:MAX_TEXT_CHARS] if isinstance(shown, str) else shown
        if shown:
            found.append(Condition(by=member, kind=kind if is_enforced else "text", value=shown, enforced=is_enforced))
    return found


def unreadable_conditions(given: Any) -> list[str]:
    """The conditions of a vote that cannot be read, or that say nothing, as clauses; a sentence can always be read."""
    objects = given if isinstance(given, list) else [given]
    problems: list[str] = []
    for each in objects:
        parts = each.items() if isinstance(each, Mapping) else ()
        values = [(kind, one) for kind, value in parts for one in (value if isinstance(value, list) else [value])]
        values = [(kind, one) for kind, one in values if one is not None]
        if not values:
            problems.append("a condition is empty")
        for kind, value in values:
            is_readable = bool(str(value).strip()) if kind == "text" else is_enforceable(kind, value)
            if not is_readable:
                shown = " ".join(plain_text(str(value)).split())[:MAX_TEXT_CHARS]
                problems.append(f"`{kind}: {shown}` cannot be read")
    return problems


def is_enforceable(kind: str, value: Any) -> bool:
    """Whether the runtime can hold work to a condition."""
    try:
        match kind:
            case "cannot" | "ask":
                return bool(parse_rule(value))
            case "below":
                return bool(_path_of(value))
            case "usd":
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return is_number and 0 < value < float("inf")
            case "until":
                return _moment_of(value).timestamp() > 0
    except (KoiError, ValueError, OverflowError, AttributeError, TypeError):
        return False
    return False


def _path_of(text: str) -> str:
    """A path from the project, without `.` and slashes at its ends; empty for one that leads out of it or is all."""
    path = PurePosixPath(text.strip().replace("\\", "/").removesuffix("/**"))
    is_outside = path.is_absolute() or ".." in path.parts or "~" in path.parts[:1] or ":" in text
    return "" if is_outside or not path.parts or any(sign in text for sign in "*?[{") else path.as_posix()


def _moment_of(text: str) -> datetime:
    """A moment; one without a zone is of this machine. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.astimezone()


# ---------------------------------------------------------------- work


async def hold(given: Sequence[Condition], now_ms: float, work: Callable[..., Any], notice: str) -> Any:
    """Do work under conditions, as a call that is narrowed to a role. Raises as the work does, or KoiError.

    Args:
        now_ms: the clock of the program, so that a resumed run has as much time as before.
        notice: the text for the worker, which `work` is called with.
    """
    if not all(isinstance(each, Mapping) and "enforced" in each for each in given):
        raise AgentError("these are no conditions", help="Give the `conditions` of what `deliberate` returned.")
    held = [each for each in given if each["enforced"]]
    rules = {kind: tuple(rule_of(each) for each in held if each["kind"] == kind) for kind in ("cannot", "ask")}
    paths = tuple(_path_of(str(each["value"])) for each in held if each["kind"] == "below")
    amounts = [float(each["value"]) for each in held if each["kind"] == "usd"]
    ends = [_moment_of(str(each["value"])).timestamp() - now_ms / 1000 for each in held if each["kind"] == "until"]
    if any(end <= 0 for end in ends):
        raise AgentError("the time that a condition leaves is over", help="Deliberate again.")
    run = current.get()
    budget = Budget(usd=min(amounts, default=None), time_s=min(ends, default=None))
    with enter("conditions"), held_to(CallConditions(rules["cannot"], rules["ask"], paths)):
        spending = None if run is None else run.ledger.spending_of("the conditioned work", budget, is_playbook=False)
        with nullcontext() if spending is None else paid_by(spending):
            async with in_time(*([] if spending is None else [spending])):
                found = apply(work, notice)
                return await found if isinstance(found, Awaitable) else found


def rule_of(condition: Condition) -> AccessRule:
    """The rule of a condition. Raises SettingsError for none."""
    return parse_rule(str(condition["value"]), "the conditions")


def end_blocked(reasons: str) -> NoReturn:
    """End the run with a block. Raises BlockedError always."""
    help = "Change the task, or lift this block once with `--override`; `--simulate` tells what would follow."
    raise BlockedError(f"the deliberation blocks the task, and nothing was done; {reasons}", help=help)


async def override(task: str, reasons: str) -> Override:
    """Have the person lift a block, in words of their own, which the journal keeps. Raises BlockedError without any."""

    async def ask() -> Override:
        run = current.get()
        if run is None:
            raise AgentError("nobody can be asked outside of a run", help="Call this in a handler.")
        question = f"The deliberation blocks this. {reasons}\nWhy is it done all the same? Nothing leaves it blocked."
        why = " ".join(plain_text(await run.host.ask(question, ())).split())[:MAX_TEXT_CHARS]
        return Override(who=getuser(), why=why)

    lifted: Override = await perform_effect(Effect("deliberation.override", {"task": task, "block": reasons}), ask)
    if not lifted["why"]:
        end_blocked(reasons)
    return lifted


async def own_instructions() -> OwnInstructions:
    """The instructions of the person for all projects; empty texts where there are none."""

    async def look() -> OwnInstructions:
        found, _ = await asyncio.to_thread(read_own_instructions)
        return OwnInstructions(path=found[0].path if found else "", text=found[0].text if found else "")

    own: OwnInstructions = await perform_effect(Effect("deliberation.person", {}, safe=True, reads_files=True), look)
    return own


async def require_consent(task: str, reasons: str) -> None:
    """Ask the person whether work is done that no majority approved. Raises PermissionDeniedError without a yes."""
    asking, run = agent(), current.get()
    what = f"do this without a decision of its deliberation: {' '.join(plain_text(task).split())[:MAX_TEXT_CHARS]}"

    async def ask() -> bool:
        if run is None:
            raise AgentError("nobody can be asked outside of a run", help="Call this in a handler.")
        request = ApprovalRequest(what, reasons, "" if asking is None else asking.name)
        await run.policy.require(Access(request=request))
        return True

    await perform_effect(Effect("deliberation.consent", {"task": task}), ask)
