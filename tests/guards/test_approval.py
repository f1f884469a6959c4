"""Approval by the person, and the permissions that are kept of it."""

from __future__ import annotations

import ast
import asyncio

import pytest

from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.permissions import Permission, Permissions, exact_permission
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, SilentHost
from koi_lang.system import resources

# Who puts a request for approval to a person: hosts that pass it on, and the guard.
# Those that decide, and those that pass on what was asked, or what was answered, between a person and a run.
ASKING = {
    *("koi_lang/runtime/guards/policy.py", "koi_lang/runtime/run.py", "koi_lang/sessions/shared_host.py"),
    *("koi_lang/cli/attaching/attached_terminal.py", "koi_lang/cli/attaching/terminal_call.py"),
    *("koi_lang/cli/dashboard/app.py", "koi_lang/cli/dashboard/service_source.py"),
    *("koi_lang/client/async_client.py", "koi_lang/client/sync_client.py"),
}


class Person(SilentHost):
    """A person who always answers the same."""

    def __init__(self, answer: Approval) -> None:
        self.answer, self.asked = answer, list[tuple[str, str, str]]()

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Answer, and keep what was asked."""
        self.asked.append((request.what, request.detail, request.agent))
        return ApprovalDecision(self.answer)


def decide(host: SilentHost, permissions: Permissions, permission: Permission | None = None, what: str = "dig") -> str:
    """What becomes of a request."""
    request = ApprovalRequest(what, "deep", "Mole")
    access = Access(request=request, permission=permission)
    return asyncio.run(Policy(host, permissions).decide(access)).outcome


@pytest.mark.parametrize(
    ("host", "verdict", "kept"),
    [
        (Person("yes"), "allowed", []),
        (Person("always"), "allowed", ["dig=here"]),
        (Person("no"), "refused", []),
        (SilentHost(), "unanswered", []),
    ],
    ids=["yes", "always", "no", "nobody"],
)
def test_the_person_decides(host: SilentHost, verdict: str, kept: list[str]) -> None:
    """Only `always` is kept; a refusal and nobody to ask are told apart."""
    told: list[str] = []
    permissions = Permissions((), told.append)

    assert verdict == decide(host, permissions, exact_permission("dig=here"))
    assert kept == told == sorted(permissions.rules)


def test_what_is_allowed_is_not_asked_about() -> None:
    """A rule that covers it is enough, whether it was given beforehand or for always."""
    person, permissions = Person("always"), Permissions(["shell:ls *"])

    verdicts = [decide(person, permissions, command_permission(text, place_of(None, resources.PACKAGE)))
                for text in ("ls a", "rm a", "rm a")]  # fmt: skip

    assert (["allowed"] * 3, 1) == (verdicts, len(person.asked))


def test_without_a_rule_every_time_is_asked_about() -> None:
    """Where nothing can be allowed for always, `always` counts once."""
    person, permissions = Person("always"), Permissions()

    assert ["allowed", "allowed"] == [decide(person, permissions), decide(person, permissions)]
    assert (2, frozenset()) == (len(person.asked), permissions.rules)


def test_nothing_hides_in_what_is_asked() -> None:
    """Control characters and gaps are spelt out, whoever asks."""
    person = Person("no")
    decide(person, Permissions(), what="dig\x1b[2K\r" + " " * 99 + "rm")

    assert [("dig\\x1b[2K\\r[99 blanks]rm", "deep", "Mole")] == person.asked


def test_only_the_guard_asks_a_host() -> None:
    """Whatever needs approval goes by the guard, so that it is made visible and what was allowed counts."""
    asking = set()
    for path in sorted(resources.PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        tree = ast.parse(text if ".approve" in text else "")
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if any(isinstance(function, ast.Attribute) and function.attr == "approve" for function in calls):
            asking.add(path.relative_to(resources.PACKAGE.parent).as_posix())

    assert asking == ASKING
