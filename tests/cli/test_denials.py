"""What a person gets to know of actions that were denied because nobody could be asked."""

from __future__ import annotations

import json

import pytest

from koi_lang.cli.ui.reporters import DenialNotice
from koi_lang.events import EffectFailed, Event
from tests.in_process import exit_code_of
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { playbook "List the files." } }
    run Main.go({})
    """
LIST = {"intent": "shell", "command": "ls", "description": "see", "id": "s"}
LOOK = {"intent": "shell", "command": "pwd", "description": "see"}
DONE = {"intent": "return", "data": {}}
HELP = '`--allow "run:ls"` allows it beforehand, and so does `[permissions] allow` in `koi.toml`\n'
LINE = f"nobody can be asked to allow `ls`, so it was not run; {HELP}"


@pytest.mark.parametrize(("words", "told"), [((), LINE), (("--quiet",), LINE), (("--allow", "shell"), "")])
def test_a_denied_action_is_told_once(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    """The first action that is denied because nobody is there is a line on stderr, also with `--quiet`."""
    monkeypatch.chdir(project.write("main.koi", PROGRAM).parent)
    project.write("answers.json", json.dumps([LIST, LOOK, DONE]))

    code = exit_code_of("run", "main.koi", "--answers", "answers.json", *words)

    assert (0, ("", told)) == (code, tuple(capsys.readouterr()))


def test_what_a_denied_action_would_have_given_is_not_made_up(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A playbook that returns the output of a denied action does not end well, and the reason is told."""
    monkeypatch.chdir(project.write("main.koi", PROGRAM).parent)
    project.write("answers.json", json.dumps([LIST, {"intent": "return", "data": {"r": "${s.output.stdout}"}}]))

    assert 69 == exit_code_of("run", "main.koi", "--answers", "answers.json")
    assert "return failed: `${s.output.stdout}` has no value: `s` failed" in capsys.readouterr().err


def test_a_denial_without_advice_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What no rule can allow, such as a consent, has no help."""
    failure = {"error": "nobody can be asked to let an agent dig, so it was not done", "class": "NobodyAllowsError"}

    DenialNotice(print)(Event(1, 1.0, "run", "A", EffectFailed("dig", {}, failure=failure), ()))

    assert f"{failure['error']}\n" == capsys.readouterr().out
