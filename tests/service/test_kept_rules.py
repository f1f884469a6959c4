"""What a user of a service allows for later runs: it counts for them alone, and can be taken back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import EVERYBODY, User
from koi_lang.sessions.calls import begin_named
from koi_lang.settings.lasting_rules import LastingRules
from tests.projects import Project
from tests.service.hosting import data, play, until, until_told

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on go(args: Json) {
        return await this.callAction("shell", { command: "echo a", description: "to see" })
      }
    }
    """
ADA, BOB = User("ada"), User("bob")


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration of the test's own, beside the project."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "config"))


async def answer(host: SessionHost, user: User, decision: str, keep: str = "") -> list[str]:
    """What a user is asked in a new session, who gives an answer and says whether a rule is to last."""
    session, _ = await host.start(user, "", partial(begin_named, name="Main.go"))
    asked: list[str] = []
    while await next_state(session) == "waiting":
        asked.append(await answer_one(session, decision, keep))
    return asked


async def answer_one(session: HostedSession, decision: str, keep: str) -> str:
    """What a session asks now, which is answered."""
    (request,) = session.feed.requests
    id = request["id"]
    if "question" in request:
        await data(session, "answer", request=id, answer=keep)
    else:
        await data(session, "approve", request=id, decision=decision)
    await until_told(session, lambda _: all(each["id"] != id for each in session.feed.requests))
    return str(request.get("question") or request["what"])


async def next_state(session: HostedSession) -> str:
    """The state in which a session has to be looked after, or is done."""
    await until(session, "waiting", "idle")
    return session.state


def test_what_one_user_keeps_counts_for_nobody_else(tmp_path: Path) -> None:
    """Neither the note of the first time nor the rule; not for the person who runs the service either."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.koi").write_text(PROGRAM)

    async def scenario(host: SessionHost) -> list[int]:
        asked = [await answer(host, user, "always", "yes") for user in (ADA, BOB, BOB, BOB, ADA, EVERYBODY)]
        return [len(each) for each in asked]

    assert [1, 1, 2, 0, 2, 1] == play(project, scenario, "a.koi")
    kept = [(rules.user, len(rules.rules())) for rules in LastingRules.find_all()]
    assert [("ada", 1), ("bob", 1)] == kept
    assert [] == LastingRules.of(project).rules()


def test_rules_are_listed_and_taken_back(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of this folder by user, or of all; one that is removed is asked about twice again."""
    own = str(tmp_path / "config")
    monkeypatch.setenv("KOI_CONFIG_DIR", own)
    for folder, user in ((project.folder, ""), (project.folder, "ada"), (tmp_path / "other", "")):
        rules = LastingRules.of(folder, user)
        rules.note_given("write=src/")
        rules.keep("write=src/")
        rules.keep("shell:echo a")
    listed, removed, unknown, others = (
        project.koi("permissions", *words, KOI_CONFIG_DIR=own)
        for words in (
            ["list"],
            ["remove", "write=src/", "--user", "ada"],
            ["remove", "write=src/", "--user", "bob"],
            ["list", "--all"],
        )
    )

    rules_kept = ["write=src/", "shell:echo a"]
    assert [*rules_kept, *(f"{rule}  for `ada`" for rule in rules_kept)] == listed.stdout.splitlines()
    assert "removed write=src/\n" == removed.stdout
    assert not LastingRules.of(project.folder, "ada").note_given("write=src/")
    assert ["shell:echo a"] == LastingRules.of(project.folder, "ada").rules()
    assert rules_kept == LastingRules.of(project.folder).rules()
    assert (2, True) == (unknown.returncode, "no rule `write=src/` is kept here for `bob`" in unknown.stderr)
    assert 5 == len(others.stdout.splitlines())
