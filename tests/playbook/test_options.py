"""What the command line and `koi.toml` say about limits and permissions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.settings import project, read_settings
from tests.playbook.playing import act, done, solo
from tests.projects import Project

SHELL = act("shell", command="echo made >out.txt", description="d")
PLAIN = act("shell", command="touch out.txt", description="d")
ENDLESS = [act("print", message=n) for n in range(60)]


def run(project: Project, answers: list[Any], *options: str) -> tuple[int, str]:
    """The exit code of `koi run` and what it says on stderr."""
    project.write("program.koi", solo("execute") + "run Main.go({})\n")
    project.write("answers.json", json.dumps(answers))
    ended = project.koi("run", "program.koi", "--answers", "answers.json", *options)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-turns", "3"], "`Main.go` did not return within 3 turns"),
        (["--max-tokens", "10"], "the run has used 0 of its 10 tokens, and the next request takes about"),
        (["--max-time", "1ms"], "the run took longer than its budget of 0.001 s"),
    ],
)
def test_limits_of_the_command_line(project: Project, options: list[str], problem: str) -> None:
    """A run that reaches a limit ends with 1 and says which, and where it was."""
    code, told = run(project, ENDLESS, *options)

    assert (4, True) == (code, problem in told)
    assert "program.koi:" in told


def test_limits_of_the_project(project: Project) -> None:
    """`[limits]` in `koi.toml` counts where the command line says nothing."""
    project.write("koi.toml", "[limits]\nturns = 4\n")

    assert "within 4 turns" in run(project, ENDLESS)[1]
    assert "within 2 turns" in run(project, ENDLESS, "--max-turns", "2")[1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-time", "soon"], "`--max-time soon` is no time"),
        (["--max-time", "0s"], "`--max-time 0s` is no time"),
        (["--max-turns", "0"], "0 is not in the range x>=1"),
        (["--max-usd", "0"], "0.0 is not in the range x>0"),
        (["--allow", "git status"], "`--allow git status` allows nothing"),
        (["--allow", "mcp:"], "`--allow mcp:` allows nothing"),
        (["--allow", "mcp:files:"], "`--allow mcp:files:` allows nothing"),
        (["--allow", "shell:"], "`--allow shell:` allows nothing"),
    ],
)
def test_options_that_make_no_sense(project: Project, options: list[str], problem: str) -> None:
    """They are refused with 2 before anything runs."""
    code, told = run(project, [done()], *options)

    assert (2, True) == (code, problem in told)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("action", "options", "toml", "allowed"),
    [
        (SHELL, [], "", False),
        (SHELL, ["--allow", "shell"], "", True),
        (SHELL, ["--allow", "shell:echo *"], "", False),
        (PLAIN, ["--allow", "shell:touch *"], "", True),
        (PLAIN, ["--allow", "shell:touch out.txt"], "", True),
        (PLAIN, ["--allow", "shell:touch"], "", False),
        (PLAIN, [], '[shell]\nallow = ["ls", "touch *"]\n', True),
        (PLAIN, [], '[shell]\nallow = ["ls"]\n', False),
    ],
)
def test_permissions(project: Project, action: Any, options: list[str], toml: str, allowed: bool) -> None:
    """Without a terminal a command runs only if a rule of the command line or of `koi.toml` covers it."""
    project.write("koi.toml", toml)
    run(project, [action, done()], *options)

    assert allowed == (project.folder / "out.txt").exists()


# ---------------------------------------------------------------- koi.toml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("[help]\nx = 1\n", {}),
        ("[limits]\nusd = 1\ntime = 2.5\nfailures = 3\n", {"usd": 1, "time": 2.5, "failures": 3}),
    ],
)
def test_limits_are_read(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """The table may be missing, and holds numbers above 0."""
    (tmp_path / "koi.toml").write_text(text)

    assert expected == project.limits(read_settings(tmp_path))


def test_a_project_without_file_has_no_settings(tmp_path: Path) -> None:
    """Where there is no `koi.toml`, nothing is limited and nothing allowed."""
    found = read_settings(tmp_path)
    assert ({}, {}, []) == (project.read_toml(found), project.limits(found), project.allowed_commands(found))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("limits = 5", "`limits` in `koi.toml` is no table"),
        ("[limits]\nturn = 5", "`[limits]` in `koi.toml` has no `turn`"),
        ("[limits]\nturns = 1.5", "`turns` in `[limits]` of `koi.toml` must be a whole number above 0, not 1.5"),
        ("[limits]\nusd = true", "`usd` in `[limits]` of `koi.toml` must be a number above 0, not True"),
        ("[limits]\ntime = 0", "`time` in `[limits]` of `koi.toml` must be a number above 0, not 0"),
        ("[limits", "`koi.toml` cannot be read:"),
    ],
)
def test_limits_that_make_no_sense(tmp_path: Path, text: str, problem: str) -> None:
    """The message names the entry, what was expected and what came."""
    (tmp_path / "koi.toml").write_text(text)

    with pytest.raises(SettingsError) as error:
        project.limits(read_settings(tmp_path))

    assert error.value.message.startswith(problem)


def test_a_number_in_quotes_is_told_how_to_write(tmp_path: Path) -> None:
    """Limits of the command line have units, those of the file are numbers."""
    (tmp_path / "koi.toml").write_text('[limits]\ntime = "350ms"')

    with pytest.raises(SettingsError) as error:
        project.limits(read_settings(tmp_path))

    assert "Write it without quotes and unit, as in `time = 60`." == error.value.help


def test_a_limit_is_finite(tmp_path: Path) -> None:
    """Nothing can be counted against one that is not."""
    (tmp_path / "koi.toml").write_text("[limits]\nusd = inf")

    with pytest.raises(SettingsError, match="must be a number above 0, not inf"):
        project.limits(read_settings(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shell = 5", "`shell` in `koi.toml` is no table"),
        ("[shell]\nallow = 'ls'", "`allow` in `[shell]` of `koi.toml` is no list of texts"),
        ("deny = ['run:ls']", "`deny` of `koi.toml` stands in no section"),
        ("[shell]\nallow = [5]", "`allow` in `[shell]` of `koi.toml` is no list of texts"),
        ("[shell]\nalow = ['ls']", "`[shell]` in `koi.toml` has no `alow`"),
        ("[http]\nallow = [1]", "`allow` in `[http]` of `koi.toml` is no list of texts"),
        ("[web]\nsearch = 'here'", "`search` in `[web]` of `koi.toml` must be an address of the web"),
        ("[memory]\nkeep = 'all'", "`keep` in `[memory]` of `koi.toml`"),
        ("[check]\nprose = 'no'", "`prose` in `[check]` of `koi.toml` must be true or false"),
        ("[trust]\nrun = 'maybe'", "`run` in `[trust]` of `koi.toml`"),
        ("[mcp.files]\nallow = 5", "`allow` in `[mcp.files]` of `koi.toml` is no list of texts"),
        ("mcp = 1", "`mcp` in `koi.toml` describes no MCP server"),
        ("a2a = 1", "`a2a` in `koi.toml` is no table"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, text: str, problem: str) -> None:
    """They are told with the first that are needed, whatever section these are in."""
    (tmp_path / "koi.toml").write_text(text)

    with pytest.raises(SettingsError, match=re.escape(problem)):
        project.allowed_commands(read_settings(tmp_path))
