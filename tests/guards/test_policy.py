"""The policy of a run: who decides, in which order, what a person is told of it, and how much it takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docs.generate import permissions_page
from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.events import Events
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.permissions import Permissions, Restrictions, Trust
from koi_lang.runtime.guards.policy import SOURCES, Access, CallConditions, Policy, Refusal, held_to
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyAllowsError, SilentHost
from koi_lang.runtime.plan_mode import PlanMode

READER, NOBODY = Role("Reader", ("read",)), Role("Nobody", ())
GIT = command_permission("git push", place_of(None, Path()))
PASTED = command_permission("echo $(id)", place_of(None, Path()))
# What each source says of a command that all of them have an opinion about.
SAID = {
    "plan_mode": "plan mode",
    "role": "the role `Nobody` lacks",
    "narrowing": "to which this call is narrowed",
    "never_topics": '`[trust] deploy = "never"`',
    "grants": "is granted to nobody",
    "deny_rules": "the rule `run:git push` of the person denies it",
    "conditions": "the condition `cannot run:git push` denies it",
    "given_answers": "",
    "asking_topics": '`[trust] deploy = "ask"` has you asked',
    "allow_rules": "",
    "ask_rules": "the rule `run:git *` has you asked",
}


def opposed(without: list[str]) -> tuple[Policy, Access]:
    """A policy and an access about which every source has an opinion, but for some."""

    def unless(name: str, value: object, other: object) -> object:
        return other if name in without else value

    level = unless("never_topics", "never", unless("asking_topics", "ask", "act"))
    trust = Trust((("deploy", level),)) if level != "act" or "allow_rules" not in without else Trust()
    deny = unless("deny_rules", (parse_rule("run:git push"),), ())
    given = unless("given_answers", [GIT.rule], [])
    allowed = unless("allow_rules", ["run:git push"], [])
    restrictions = Restrictions(deny, (parse_rule("run:git *"),), trust)
    planning = PlanMode(Events("run"))
    planning.is_on = "plan_mode" not in without
    bounds = unless("narrowing", (NOBODY,), ())
    access = Access(
        "`deploy`",
        permission=GIT,
        role=Role("Nobody", ("x",) if "role" not in without else ("run",), bounds),
        needs="run",
        topic="deploy",
        changes=True,
        closed=unless("grants", Refusal("it is granted to nobody"), None),
        is_open=True,
    )
    return Policy(None, Permissions([*given, *allowed], restrictions=restrictions), planning), access


def test_the_strictest_source_decides() -> None:
    """Each source decides before all that come behind it, whatever they would say."""
    names = [source.__name__.removeprefix("check_") for source in SOURCES]
    assert list(SAID) == names

    for at, name in enumerate(names):
        policy, access = opposed(names[:at])
        held = CallConditions((parse_rule("run:git push"),) if "conditions" not in names[:at] else ())
        with held_to(held):
            verdict = policy.verdict(access)
        expected = "denied" if at < 7 else "allowed" if name in ("given_answers", "allow_rules") else "ask"
        assert (name, expected) == (name, verdict.outcome)
        assert SAID[name] in (verdict.message or verdict.reason)


def test_where_nobody_says_anything() -> None:
    """What is open is done, for all else the person is asked, and where there is nobody it is not done."""
    policy = Policy(SilentHost(), Permissions())
    request = ApprovalRequest("dig")

    assert policy.is_open(Access(is_open=True))
    assert policy.verdict(Access()).outcome == "ask"
    with pytest.raises(PermissionDeniedError, match=r"^nobody can be asked to let an agent dig, so it was not done$"):
        asyncio.run(policy.require(Access(request=request)))


@pytest.mark.parametrize(
    ("access", "trust", "help"),
    [
        (Access(permission=GIT), (), '`--allow "run:git push"` allows it beforehand, and so does `[permissions] allow'),
        (Access(permission=PASTED), (), '`--allow "run"` allows it beforehand'),
        (Access(rule="mcp:files:read"), (), '`--allow "mcp:files:read"` allows it beforehand, and so does `[mcp.files'),
        (Access(rule="mcp:files:$(id)"), (), '`--allow "mcp:SERVER:TOOL"` allows it beforehand'),
        (Access(permission=GIT), (("push", "ask"),), 'No rule allows it beforehand, since `[trust] push = "ask"` has'),
        (Access(), (), ""),
    ],
)
def test_what_to_do_where_nobody_can_be_asked(access: Access, trust: Any, help: str) -> None:
    """The rule is shown where it would count, and where pasting it into a shell starts nothing."""
    policy = Policy(SilentHost(), Permissions(restrictions=Restrictions(trust=Trust(trust))))

    with pytest.raises(NobodyAllowsError) as refused:
        asyncio.run(policy.require(replace(access, request=ApprovalRequest("dig"))))

    assert (refused.value.help or "").startswith(help)


class Listening(SilentHost):
    """A person who allows everything, and keeps why they were asked."""

    def __init__(self) -> None:
        self.details: list[str] = []

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Keep the detail."""
        self.details.append(request.detail)
        return ApprovalDecision("yes")


def test_a_question_says_which_rule_asks() -> None:
    """Whoever has written a rule that asks reads which one it was; without one there is nothing to say."""
    host, rule = Listening(), parse_rule("run:git *")
    request = ApprovalRequest("run `git push`", "to publish")
    for restrictions in (Restrictions(ask=(rule,)), Restrictions()):
        policy = Policy(host, Permissions(restrictions=restrictions))
        asyncio.run(policy.decide(Access(request=request, permission=GIT)))

    assert ["to publish; the rule `run:git *` has you asked", "to publish"] == host.details


def test_the_manual_lists_the_sources() -> None:
    """The page is made of the list, in its order."""
    page = permissions_page()
    places = [page.index(f"| {source.__name__.removeprefix('check_').replace('_', ' ')} |") for source in SOURCES]

    assert sorted(places) == places
