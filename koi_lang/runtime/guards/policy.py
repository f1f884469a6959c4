"""The policy of a run: the one place that says whether something may be done.

`SOURCES` lists who has a say, the strictest first. The first source with an opinion decides; where none has one, what
is wanted is done if it is open to everybody, else the person is asked. A source never asks anybody itself, so what may
be done can be shown without doing it, as `koi audit` does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.guards.access_rules import ANY, EVERYTHING, AccessRule, Kind, WantedAccess
from koi_lang.runtime.guards.permissions import Permission, Permissions, is_meant
from koi_lang.runtime.guards.started_commands import read_commands
from koi_lang.runtime.host import ApprovalRequest, Host, NobodyAllowsError, NobodyToAskError, visible
from koi_lang.runtime.plan_mode import HELP, READING, ActionTraits, changes_something
from koi_lang.runtime.replay.location import current_path

if TYPE_CHECKING:
    from koi_lang.runtime.agents.declarations import Role
    from koi_lang.runtime.plan_mode import PlanMode


NO, YES = "no", "yes"
# A rule that a shell leaves as it is, and that means itself.
PLAIN_RULE = re.compile(r"[\w ./:=,@%+-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something may be done.

    Attributes:
        outcome: a source of the policy allows or denies it, the person is to be asked, the person refuses it, or there
            is nobody to ask.
        reason: why not, or why the person is asked, as a clause: what the person has said, or which rule.
        message: why not, as a whole sentence; empty where the reason is all there is.
        help: what to do about it.
    """

    outcome: Literal["allowed", "denied", "ask", "refused", "unanswered"]
    reason: str = ""
    message: str = ""
    help: str | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether it may be done."""
        return self.outcome == "allowed"

    @property
    def because(self) -> str:
        """The reason as the end of a sentence; empty where none was given."""
        return f": {self.reason}" if self.reason else ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason of a refusal as a sentence, with advice."""

    message: str
    help: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Something that is about to be done.

    Attributes:
        subject: how refusals call it, with its marks, such as "`shell`"; empty for what the request says.
        request: what the person is asked, where it comes to that.
        permission: what rules say of it, and what "always" stands for; None where only an answer counts, every time.
        role: of the agent, as far as its call is not narrowed; None for code, which its author answers for.
        bounds: the roles that the code of a call is narrowed to.
        needs: the permission that the role and all bounds must have; None where it needs none.
        topic: its name in `[trust]`, for actions and tools.
        changes: whether plan mode, in which nothing is changed, refuses it; an action says so by its traits.
        closed: why what describes it, such as the grants of a server, closes it; None where nothing does.
        is_open: whether it is done where no source says anything, rather than the person asked.
        done: what would have been done to it, for refusals: "run", "used".
        rule: the rule that allows it, where its permission does not say so.
    """

    subject: str = ""
    request: ApprovalRequest | None = None
    permission: Permission | None = None
    role: Role | None = None
    bounds: tuple[Role, ...] = ()
    needs: str | None = None
    topic: str = ""
    changes: bool | ActionTraits = False
    closed: Refusal | None = None
    is_open: bool = False
    done: str = "done"
    rule: str = ""


def action_access(
    kind: ActionTraits, *, role: Role | None = None, bounds: tuple[Role, ...] = (), topic: str = ""
) -> Access:
    """An action that a model asks for in a role, or code under its bounds."""
    subject = f"`{kind.name}`"
    return Access(subject, role=role, bounds=bounds, needs=kind.needs, topic=topic, changes=kind, is_open=True)


def function_access(
    subject: str, permission: str | None, *, role: Role | None = None, bounds: tuple[Role, ...] = ()
) -> Access:
    """The same for a function of a skill, which says in plan mode by its permission that it only reads."""
    changes = permission not in READING
    return Access(subject, role=role, bounds=bounds, needs=permission, changes=changes, is_open=True)


def any_access(kind: Kind) -> Access:
    """All of a kind: whoever denies it denies each that is of the kind."""
    return Access(permission=Permission(kind, f"`{kind}`", WantedAccess(kind, EVERYTHING)))


class Policy:
    """Decides by its sources, and has the person decide where they leave it open.

    Args:
        host: where the person is; None where nobody is asked.
        permissions: the rules of the person.
        planning: plan mode; None outside of runs.
    """

    def __init__(self, host: Host | None, permissions: Permissions, planning: PlanMode | None = None) -> None:
        self.permissions = permissions
        self.planning = planning
        self._host = host
        self._asked = 0

    def verdict(self, access: Access) -> Verdict:
        """The verdict of the sources: allowed, denied, or a question to the person."""
        for source in SOURCES:
            if (found := source(self, access)) is not None:
                return found
        return ALLOWED if access.is_open else ASK

    def check(self, access: Access) -> None:
        """Raise PermissionDeniedError where a source denies; asks nobody."""
        verdict = self.verdict(access)
        if verdict.outcome == "denied":
            raise _refusal(access, verdict)

    def is_open(self, access: Access) -> bool:
        """Whether something is done without a question."""
        return self.verdict(access).is_allowed

    async def decide(self, access: Access) -> Verdict:
        """The verdict of the sources, else of the person, else a refusal because nobody can be asked."""
        verdict = self.verdict(access)
        request, permission = access.request, access.permission
        if verdict.outcome != "ask" or self._host is None or request is None:
            return verdict
        self._asked += 1
        handlers = [label.partition("#")[0] for label in current_path() if "." in label and "::" not in label]
        shown = replace(
            request,
            what=visible(request.what),
            detail=visible("; ".join(filter(None, (request.detail, verdict.reason)))),
            preview="\n".join(map(visible, request.preview.splitlines())),
            always="" if permission is None else visible(permission.lasting_words),
            chain=tuple(handlers[:-1]),
            id=f"approval-{self._asked}",
        )
        try:
            decision = await self._host.approve(shown)
        except NobodyToAskError:
            return Verdict("unanswered", help=verdict.help)
        if decision.answer == "always" and permission is not None:
            self.permissions.allow(permission.lasting_rule)
            await _offer_to_keep(self._host, self.permissions, permission)
        return ALLOWED if decision.answer in ("yes", "always") else Verdict("refused", visible(decision.reason))

    async def require(self, access: Access) -> None:
        """Raise unless something may be done.

        Raises:
            PermissionDeniedError: a source denies it, or the person does.
            NobodyAllowsError: there is nobody to ask.
        """
        verdict = await self.decide(access)
        if verdict.outcome != "allowed":
            raise _refusal(access, verdict)


def _refusal(access: Access, verdict: Verdict) -> PermissionDeniedError:
    if verdict.message:
        return PermissionDeniedError(verdict.message, help=verdict.help)
    what = "" if access.request is None else visible(access.request.what)
    if verdict.outcome == "unanswered":
        whom = f"allow {visible(access.subject)}" if access.subject else f"let an agent {what}"
        help = verdict.help or _allow_help(access)
        return NobodyAllowsError(f"nobody can be asked to {whom}, so it was not {access.done}", help=help)
    return PermissionDeniedError(f"the person did not allow {access.subject or f'to {what}'}{verdict.because}")


def _allow_help(access: Access) -> str | None:
    """How something is allowed beforehand. Models choose parts of the rule, so it has to be safe to paste."""
    wanted = None if access.permission is None else access.permission.access
    rule = access.rule or ("" if wanted is None else wanted.rule)
    if not rule:
        return None
    kind = rule.partition(":")[0]
    if not PLAIN_RULE.fullmatch(rule):
        rule = "mcp:SERVER:TOOL" if kind == "mcp" else kind
    section = f"mcp.{rule.split(':')[1]}" if kind == "mcp" else "permissions"
    return f'`--allow "{rule}"` allows it beforehand, and so does `[{section}] allow` in `koi.toml`.'


# ---------------------------------------------------------------- who has a say, the strictest first

ALLOWED, ASK = Verdict("allowed"), Verdict("ask")


def check_plan_mode(policy: Policy, access: Access) -> Verdict | None:
    """Plan mode refuses changes until the person has accepted a plan."""
    if policy.planning is None or not policy.planning.is_on:
        return None
    if not (access.changes if isinstance(access.changes, bool) else changes_something(access.changes)):
        return None
    message = f"{access.subject} is not marked as safe, and the run is in plan mode, in which nothing is changed"
    return Verdict("denied", message=message, help=HELP)


def check_role(policy: Policy, access: Access) -> Verdict | None:
    """The role of an agent bounds all that a model asks for on its behalf."""
    if access.role is None or access.role.lacking(access.needs) is not access.role:
        return None
    return _lacking(access, access.role)


def check_narrowing(policy: Policy, access: Access) -> Verdict | None:
    """The roles that a call is narrowed to bound its code as well."""
    bounds = access.bounds if access.role is None else access.role.bounds
    lacking = next((each for each in bounds if each.lacking(access.needs)), None)
    return None if lacking is None else _lacking(access, lacking, ", to which this call is narrowed")


def check_never_topics(policy: Policy, access: Access) -> Verdict | None:
    """`[trust] NAME = "never"` closes an action or a tool."""
    line = policy.permissions.trust.find_line("never", access.topic)
    message = f"{access.subject} is not used: `{line}` of the person denies it"
    return Verdict("denied", message=message) if line else None


def check_grants(policy: Policy, access: Access) -> Verdict | None:
    """`uses mcp NAME(PATTERNS)` grants tools of a server; `deny` in the server's description closes them."""
    return None if access.closed is None else Verdict("denied", message=access.closed.message, help=access.closed.help)


def check_deny_rules(policy: Policy, access: Access) -> Verdict | None:
    """`[permissions] deny`, and `[trust] WORD = "never"`, close files, commands, pages and tools."""
    rule = "" if access.permission is None else policy.permissions.restrictions.find_denial(access.permission.access)
    return Verdict("denied", f"the rule `{rule}` of the person denies it") if rule else None


def check_conditions(policy: Policy, access: Access) -> Verdict | None:
    """Conditions that a call is held to, such as those of a deliberation, narrow it, or have the person asked."""
    if access.permission is None:
        return None
    held, permission = _conditions.get(), access.permission
    if why := next(filter(None, (each.denial(permission) for each in held)), ""):
        what = access.subject or f"to {visible(permission.rule if access.request is None else access.request.what)}"
        return Verdict("denied", why, f"a condition of this call does not allow {what}: {why}")
    why = next(filter(None, (each.reason_to_ask(permission) for each in held)), "")
    return _always_ask(why) if why else None


def check_given_answers(policy: Policy, access: Access) -> Verdict | None:
    """Lasting permissions of the person, for this run or for the project, are not asked for again."""
    is_given = access.permission is not None and policy.permissions.grant(access.permission) == "given"
    return ALLOWED if is_given else None


def check_asking_topics(policy: Policy, access: Access) -> Verdict | None:
    """`[trust] NAME = "ask"` asks the person in spite of allow rules."""
    if line := policy.permissions.trust.find_line("ask", access.topic):
        return _always_ask(f"`{line}` has you asked")
    reason = "" if access.permission is None else policy.permissions.reason_to_ask_first(access.permission)
    return _always_ask(reason) if reason else None


def check_allow_rules(policy: Policy, access: Access) -> Verdict | None:
    """`--allow`, `[permissions] allow`, `[mcp.NAME] allow`, and `[trust] NAME = "act"` need no question."""
    if access.permission is not None and policy.permissions.grant(access.permission):
        return ALLOWED
    return ALLOWED if policy.permissions.trust.find_line("act", access.topic) else None


def check_ask_rules(policy: Policy, access: Access) -> Verdict | None:
    """`[permissions] ask` asks the person about otherwise open accesses."""
    if access.permission is None:
        return None
    rule = next(
        (rule for rule in policy.permissions.restrictions.ask if is_meant(rule, access.permission.access)), None
    )
    return None if rule is None else Verdict("ask", f"the rule `{rule.text}` has you asked")


SOURCES: Sequence[Callable[[Policy, Access], Verdict | None]] = (
    check_plan_mode,
    check_role,
    check_narrowing,
    check_never_topics,
    check_grants,
    check_deny_rules,
    check_conditions,
    check_given_answers,
    check_asking_topics,
    check_allow_rules,
    check_ask_rules,
)


def describe_sources() -> list[tuple[str, str]]:
    """Each source with its description, in their order."""
    names = [source.__name__.removeprefix("check_").replace("_", " ") for source in SOURCES]
    return [(name, inspect.getdoc(source) or "") for name, source in zip(names, SOURCES, strict=True)]


def _always_ask(reason: str) -> Verdict:
    """A question that no rule answers."""
    return Verdict("ask", reason, help=f"No rule allows it beforehand, since {reason}.")


def _lacking(access: Access, role: Role, narrowed: str = "") -> Verdict:
    message = f"{access.subject} needs the permission `{access.needs}`, which the role `{role.name}` lacks{narrowed}"
    return Verdict("denied", message=message)


# ---------------------------------------------------------------- conditions of a call


@dataclass(frozen=True, slots=True)
class CallConditions:
    """Conditions that narrow a call, and all that is called from it, beside the rules of the person.

    Attributes:
        cannot: rules for what is not done.
        ask: rules for what the person is asked about each time.
        below: folders or files from the project; only what lies below all of them is changed.
    """

    cannot: tuple[AccessRule, ...] = ()
    ask: tuple[AccessRule, ...] = ()
    below: tuple[str, ...] = ()

    def denial(self, permission: Permission) -> str:
        """Why something is not done, as a clause; empty where no condition forbids it."""
        if rule := next((rule for rule in self.cannot if is_meant(rule, permission.access)), None):
            return f"the condition `cannot {rule.text}` denies it"
        access = permission.access
        if access is None:
            return ""
        has_commands = access.kind == "run" and any(rule.kind in (ANY, "run") for rule in self.cannot)
        if has_commands and not read_commands(access.subject).is_whole:
            return "what it does cannot be read, and a condition denies some commands"
        outside = (path for path in self.below if access.kind == "write" and not is_below(access.subject, path))
        return next((f"the condition `below {path}` denies it" for path in outside), "")

    def reason_to_ask(self, permission: Permission) -> str:
        """Why the person is asked about something, as a clause; empty where no condition has them asked.

        Commands and tools of MCP servers may do what rules for files and hosts forbid, which no rule sees.
        """
        if rule := next((rule for rule in self.ask if is_meant(rule, permission.access)), None):
            return f"the condition `ask {rule.text}` has you asked"
        is_closed = permission.access is None or permission.access.kind == "run"
        has_blind_spot = self.below or any(rule.kind != "run" for rule in self.cannot)
        return "it may pass by the conditions of this call" if is_closed and has_blind_spot else ""


_conditions: ContextVar[tuple[CallConditions, ...]] = ContextVar("koi_conditions", default=())


@contextmanager
def held_to(added: CallConditions) -> Iterator[None]:
    """Hold the calls of the block to conditions; those around it stay."""
    token = _conditions.set((*_conditions.get(), added))
    try:
        yield
    finally:
        _conditions.reset(token)


def is_below(path: str, folder: str) -> bool:
    """Whether a path from the project is a folder or lies below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


# ---------------------------------------------------------------- the person


async def _offer_to_keep(host: Host, permissions: Permissions, permission: Permission) -> None:
    """Ask whether a rule that was given in an earlier run, too, is to count in every run."""
    kept, rule = permissions.kept, permission.lasting_rule
    if kept is None or not kept.note_given(rule):
        return
    question = f"Allow {visible(permission.lasting_words)} in later runs of this project, too?"
    with suppress(NobodyToAskError):
        if (await host.ask(question, [NO, YES])).strip().casefold() in ("y", YES):
            kept.keep(rule)
