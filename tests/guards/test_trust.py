"""`[trust]`: how far agents are trusted, by topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.file_access import file_permission, page_permission
from koi_lang.runtime.guards.permissions import Permission, Permissions, Restrictions, Trust, trust_of
from koi_lang.settings import project, read_settings
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act, done, solo
from tests.projects import Project
from tests.std.test_code import Person


def permissions(trust: Trust, *allowed: str) -> Permissions:
    """Those of a project that says so."""
    return Permissions([*allowed, *trust.rules()], restrictions=Restrictions(trust=trust))


def run(command: str) -> Permission:
    """Leave for a command in the folder of the run."""
    return command_permission(command, place_of(None, Path.cwd()))


@pytest.mark.parametrize(
    "command",
    [
        "deploy",
        "DEPLOY now",
        "npm run deploy",
        "true; ./bin/deploy.sh",
        "make deploy-all",
        "sh -c 'dep''loy'",
        "x=$(deploy)",
    ],
)
def test_a_word_that_is_never_done(command: str) -> None:
    """Wherever it stands in a command, and whatever else is allowed; the line is told."""
    known = permissions(trust_of({"deploy": "never", "run": "act"}), "shell")

    assert '[trust] deploy = "never"' == known.denial(run(command))
    assert "" == known.denial(run("echo deployment"))
    assert known.is_allowed(run("echo deployment"))


def test_levels_of_kinds() -> None:
    """`never` denies, `ask` asks also where a rule allows it, `act` allows."""
    known = permissions(trust_of({"web": "never", "write": "ask", "read": "ask", "run": "act"}), "write:**")

    assert '[trust] web = "never"' == known.denial(page_permission("example.com"))
    assert (True, False) == (
        bool(known.reason_to_ask_first(file_permission("read", "a"))),
        known.is_allowed(file_permission("write", "a")),
    )
    assert known.is_allowed(run("rm -rf x; ls"))
    assert not known.is_open("web")
    known.allow("write=src/")
    assert known.is_allowed(file_permission("write", "src/a"))


def test_a_word_that_is_trusted() -> None:
    """Simple commands that begin with it need no question; others do."""
    known = permissions(trust_of({"pytest": "act"}))

    allowed = [
        known.is_allowed(run(text)) for text in ("pytest", "pytest -x", "pytest; rm a", "rm pytest", "pytest2 a")
    ]

    assert [True, True, False, False, False] == allowed


def test_an_action_that_is_never_used(play: Player, tmp_path: Path) -> None:
    """It is not offered, and refused with the line that says so, whatever rules and hooks allow."""
    known = Restrictions(trust=trust_of({"shell": "never"}))
    played = play(
        solo("execute"), [act("shell", command="touch x", description="y"), done()],
        folder=tmp_path, restrictions=known, allow=["shell"],
    )  # fmt: skip

    assert '`shell` is not used: `[trust] shell = "never"` of the person denies it' in played.feedback[1]
    assert "shell(" not in played.requests[0].system
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("answer", "is_set"), [("yes", True), ("no", False)])
def test_an_action_that_is_asked_about(play: Player, tmp_path: Path, answer: Any, is_set: bool) -> None:
    """The person sees what it is given, and says whether it is done."""
    known, person = Restrictions(trust=trust_of({"update_state": "ask"})), Person()
    person.decision = person.decision.__class__(answer)
    work = [act("update_state", updates={"n": 1}), done()]
    played = play(solo("execute", more="state { n = 0 }"), work, host=person, folder=tmp_path, restrictions=known)

    detail = '{"updates": {"n": 1}}; `[trust] update_state = "ask"` has you asked'
    assert [("use the action `update_state`", detail)] == [(each.what, each.detail) for each in person.requests]
    assert is_set == ("update_state" in played.did())


@pytest.mark.parametrize(
    ("line", "message", "help"),
    [
        (
            'deploy = "nevr"',
            "`deploy` in `[trust]` of `koi.toml` is 'nevr', not one of",
            'Did you mean `deploy = "never"`?',
        ),
        ("deploy = 1", "`deploy` in `[trust]` of `koi.toml` is 1, not one of", None),
        ('wirte = "never"', "`[trust]` in `koi.toml` has no `wirte`", "Did you mean `write`?"),
        ('"git push" = "never"', "`git push` in `[trust]` of `koi.toml` is not one word", project.TOPIC_HELP),
    ],
)
def test_what_means_nothing(tmp_path: Path, line: str, message: str, help: str | None) -> None:
    """One sentence says what is wrong, and what may be meant."""
    (tmp_path / "koi.toml").write_text(f"[trust]\n{line}\n")

    with pytest.raises(SettingsError) as raised:
        project.trust(read_settings(tmp_path))

    assert raised.value.message.startswith(message)
    assert help == raised.value.help


def test_trust_in_a_project(project: Project) -> None:
    """`koi.toml` is heeded by `koi run`; `--allow` cannot widen it."""
    project.write("a.koi", solo("execute") + "\nrun Main.go({})\n")
    project.write("koi.toml", '[trust]\ndeploy = "never"\n')
    project.write("answers.json", json.dumps([act("shell", command="touch deploy", description="x"), done()]))

    outcome = project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell")

    assert (0, False) == (outcome.returncode, (project.folder / "deploy").exists())
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    assert (
        'did not allow `touch deploy`: the rule `[trust] deploy = \\"never\\"` of the person denies it'
        in journal.read_text()
    )
