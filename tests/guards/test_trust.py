"""`[trust]`: how far agents are trusted, by topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.runtime.guards.access_rules import Kind, WantedAccess
from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.file_access import file_permission, page_permission
from koi_lang.runtime.guards.permissions import Permission, Permissions, Restrictions, Trust, trust_of
from koi_lang.settings import checks, project, read_settings
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

    assert '[trust] deploy = "never"' == known.restrictions.find_denial(run(command).access)
    assert "" == known.restrictions.find_denial(run("echo deployment").access)
    assert known.is_allowed(run("echo deployment"))


def test_levels_of_kinds() -> None:
    """`never` denies, `ask` asks also where a rule allows it, `act` allows."""
    known = permissions(trust_of({"web": "never", "write": "ask", "read": "ask", "run": "act"}), "write:**")

    assert '[trust] web = "never"' == known.restrictions.find_denial(page_permission("example.com").access)
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


@pytest.mark.parametrize("name", ["shell", "run_command"])
def test_an_action_for_commands_stands_for_all_of_them(name: str) -> None:
    """Whoever closes one of the actions that run commands means commands, also those of code and of the other."""
    known = permissions(trust_of({name: "never"}), "shell")
    assert f'[trust] {name} = "never"' == known.restrictions.find_denial(run("touch x").access)
    assert permissions(trust_of({name: "act"})).is_allowed(run("touch x; touch y"))


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("bash", "shell"), ("Bash", "run_command"), ("edit", "edit_file"), ("WRITE_FILE", "write_file"),
        ("glob", "list_files"), ("str_replace_editor", "write_file"), ("deploy", "Deploy"),
    ],
)  # fmt: skip
def test_names_that_models_know_restrict_actions(topic: str, name: str) -> None:
    """Letter case does not count; what allows is read to the letter."""
    assert f'[trust] {topic} = "never"' == trust_of({topic: "never"}).find_line("never", name)
    assert f'[trust] {topic} = "ask"' == trust_of({topic: "ask"}).find_line("ask", name)
    assert "" == trust_of({topic: "act"}).find_line("act", name)


def test_what_other_agents_call_commands_restricts_them() -> None:
    """Those of code as well; a kind closes no action that has its name for models."""
    assert permissions(trust_of({"bash": "never"}), "shell").restrictions.find_denial(run("touch x").access)
    assert not permissions(trust_of({"bash": "act"})).is_allowed(run("touch x"))
    assert "" == trust_of({"read": "never"}).find_line("never", "read_file")


@pytest.mark.parametrize("topic", ["shell", "Bash"])
def test_an_action_that_is_never_used(play: Player, tmp_path: Path, topic: str) -> None:
    """It is not offered, and refused with the line that says so, whatever rules and hooks allow."""
    known = Restrictions(trust=trust_of({topic: "never"}))
    played = play(
        solo("execute"), [act("shell", command="touch x", description="y"), done()],
        folder=tmp_path, restrictions=known, allow=["shell"],
    )  # fmt: skip

    assert f'`shell` is not used: `[trust] {topic} = "never"` of the person denies it' in played.feedback[1]
    assert "shell(" not in played.requests[0].system
    assert not (tmp_path / "x").exists()


def test_an_action_that_code_may_never_use(play: Player, tmp_path: Path) -> None:
    """What the person says holds for the author of a program, too."""
    code = 'on start(args: Json) { return await this.callAction("shell", { command: "touch x", description: "y" }) }'
    known = Restrictions(trust=trust_of({"shell": "never"}))
    played = play(
        solo("execute", more=code), [], folder=tmp_path, restrictions=known, allow=["shell"], call="Main.start"
    )

    assert '`[trust] shell = "never"` of the person denies it' in played.told
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


@pytest.mark.parametrize("topic", ["shell", "bash"])
def test_commands_that_are_asked_about(play: Player, tmp_path: Path, topic: str) -> None:
    """The person is asked once, about the command, also where a rule allows all commands."""
    known, person = Restrictions(trust=trust_of({topic: "ask"})), Person()
    work = [act("shell", command="touch x", description="y"), done()]
    play(solo("execute"), work, host=person, folder=tmp_path, restrictions=known, allow=["shell"])

    assert ["run `touch x`"] == [each.what for each in person.requests]


def near_help(topic: str, kind: str) -> str:
    """What is said of a topic that may be a misspelt kind."""
    return f"Did you mean `{kind}`? {checks.NEAR_HELP.format(topic)}"


@pytest.mark.parametrize(
    ("topic", "kind"), [("Write", "write"), ("RUN", "run"), ("write_x", None), ("read-only", None)]
)
def test_topics_that_are_near_a_kind(tmp_path: Path, topic: str, kind: Kind | None) -> None:
    """Letter case does not count for what is forbidden, and names of tools are no misspelt kinds."""
    (tmp_path / "koi.toml").write_text(f'[trust]\n"{topic}" = "never"\n')

    trust = trust_of(project.trust(read_settings(tmp_path)))
    found = trust.find_line("never", access=WantedAccess(kind, "x")) if kind else trust.find_line("never", topic)

    assert f'[trust] {topic} = "never"' == found
    assert (kind == "write") == Restrictions(trust=trust).denies_files()


@pytest.mark.parametrize(
    ("line", "message", "help"),
    [
        (
            'deploy = "nevr"',
            "`deploy` in `[trust]` of `koi.toml` is 'nevr', not one of",
            'Did you mean `deploy = "never"`?',
        ),
        ("deploy = 1", "`deploy` in `[trust]` of `koi.toml` is 1, not one of", None),
        ('wirte = "never"', "`[trust]` in `koi.toml` has no `wirte`", near_help("wirte", "write")),
        ('red = "never"', "`[trust]` in `koi.toml` has no `red`", near_help("red", "read")),
        ('Write = "act"', "`[trust]` in `koi.toml` has no `Write`", near_help("Write", "write")),
        (
            '"wri*" = "never"',
            "`wri*` in `[trust]` of `koi.toml` has a wildcard, which topics do not know",
            'Write a rule such as `deny = ["write:**"]` in `[permissions]`.',
        ),
        ('"git push" = "never"', "`git push` in `[trust]` of `koi.toml` is not one word", checks.TOPIC_HELP),
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
