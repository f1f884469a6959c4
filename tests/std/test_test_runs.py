"""`runTests` of `std/checks` against the real tools: what is green, what is red, and what is neither."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.std.checks.project_files import hash_test_files
from koi_lang.std.checks.runner import run_command, run_lint, run_tests, run_types
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player
from tests.playbook.test_shell import Deciding
from tests.std.checking import CheckedProject, summary, titles

pytestmark = pytest.mark.usefixtures("tools")

ADD = "def add(a, b):\n    return a + b\n"
GREEN = {"adding.py": ADD, "test_adding.py": "from adding import add\ndef test_add():\n    assert add(1, 2) == 3\n"}
RED = {**GREEN, "adding.py": ADD.replace("+", "-")}


def test_green_tests_are_ok(checked: CheckedProject) -> None:
    """Tests that pass are counted, and nothing is found."""
    result = checked.write(GREEN).check(run_tests)

    assert ((True, 1, 0), []) == (summary(result), result["findings"])
    assert 0 < result["seconds"] < 60
    assert "1 passed" in result["output"]


def test_red_tests_are_blockers(checked: CheckedProject) -> None:
    """A test that fails is a finding with the line at which it failed."""
    result = checked.write(RED).check(run_tests)

    assert (False, 0, 1) == summary(result)
    assert [
        {"severity": "blocker", "title": "test_add: assert -1 == 3 + where -1 = add(1, 2)", "where": "test_adding.py:3"}
    ] == result["findings"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("files", "counts", "title", "where"),
    [
        (
            {**GREEN, "test_more.py": "import nothing_like_it"},
            (0, 1),
            "No module named 'nothing_like_it'",
            "test_more.py:1",
        ),
        ({**GREEN, "test_more.py": "def test_x(:\n"}, (0, 1), "SyntaxError: invalid syntax", "test_more.py"),
        (
            {"test_a.py": "import pytest\n@pytest.fixture\ndef f():\n    1 / 0\ndef test_x(f): pass\n"},
            (0, 1),
            "test_x: failed on setup",
            "test_a.py:4",
        ),
        ({"test_a.py": "import pytest\n@pytest.mark.skip\ndef test_x(): pass\n"}, (0, 1), "pytest ran no test", ""),
        ({"test_a.py": "x = 1\n"}, (0, 1), "pytest ran no test (exit code 5)", ""),
        ({**GREEN, "pytest.ini": "[pytest\n"}, (0, 1), "could not read the report of pytest: it wrote none", ""),
        ({**GREEN, "conftest.py": "import os\nos._exit(0)\n"}, (0, 1), "could not read the report of pytest", ""),
        ({**GREEN, "conftest.py": "import sys\nsys.exit(0)\n"}, (0, 1), "could not read the report of pytest", ""),
        ({"empty.txt": ""}, (0, 1), "no tests were found in this folder", ""),
        ({}, (0, 1), "no tests were found in this folder", ""),
    ],
    ids=[
        *("import", "syntax", "fixture", "all skipped", "none in a file", "broken settings", "os._exit", "sys.exit"),
        *("no tests", "no files"),
    ],
)
def test_what_is_broken_is_never_ok(
    checked: CheckedProject, files: Mapping[str, str], counts: tuple[int, int], title: str, where: str
) -> None:
    """Where nothing was tested, or nobody knows what, a finding says so; the tests that could pass change nothing."""
    result = checked.write(files).check(run_tests)

    assert (False, *counts) == summary(result)
    assert "blocker" == result["findings"][0]["severity"]
    assert title in titles(result)[0]
    assert where == result["findings"][0].get("where", "")


def test_a_missing_tool_is_told(checked: CheckedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pytest, or Python itself, is not installed, that is the finding, with what to do."""
    checked.write({**GREEN, "without/pip": ""})
    bare = checked.folder / "python"
    bare.write_text("#!/bin/sh\necho /usr/bin/python: No module named pytest >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{checked.folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    without_pytest = checked.check(run_tests)
    monkeypatch.setenv("PATH", str(checked.folder / "without"))
    without_python = checked.check(run_tests)

    assert [(False, 0, 1)] * 2 == [summary(without_pytest), summary(without_python)]
    assert [["pytest is not installed"]] * 2 == [titles(without_pytest), titles(without_python)]
    assert "python -m pip install pytest" in without_pytest["findings"][0]["fix"]


def test_very_many_failures_are_counted(checked: CheckedProject) -> None:
    """All failures count; of very many the first are listed."""
    test = "import pytest\n@pytest.mark.parametrize('n', range(250))\ndef test_n(n):\n    assert n < 0, 'é' * 5000\n"
    result = checked.write({"test_many.py": test}).check(run_tests)

    assert ((False, 0, 250), 101) == (summary(result), len(result["findings"]))
    assert "150 more are not listed" == titles(result)[-1]
    assert {300} == set(map(len, titles(result)[:-1]))


# ---------------------------------------------------------------- permission


def test_nobody_to_ask_is_no(checked: CheckedProject) -> None:
    """Without a rule and a person nothing is started."""
    checked.write({"test_a.py": "open('made', 'w')\ndef test(): pass\n"})

    with pytest.raises(PermissionDeniedError, match="nobody can be asked to allow `python -m pytest`"):
        checked.check(run_tests, allow=())

    assert not (checked.folder / "made").exists()


def test_a_rule_for_the_command_is_enough(checked: CheckedProject) -> None:
    """What `koi.toml` allows is compared with the command that a person would type."""
    assert checked.write(GREEN).check(run_tests, allow=["shell:python -m pytest"])["ok"]


def write_own_python(checked: CheckedProject) -> CheckedProject:
    """Green tests, and a virtual environment that the check finds."""
    checked.write({**GREEN, ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'})
    (checked.folder / ".venv/bin/python").chmod(0o755)
    return checked


def test_a_rule_for_python_covers_that_of_the_project(checked: CheckedProject) -> None:
    """Rules say what runs; where the check has found it is no other command."""
    result = write_own_python(checked).check(run_tests, {"files": ["test_adding.py"]}, allow=["run:python -m pytest*"])

    assert (True, 1, 0) == summary(result)


@pytest.mark.parametrize("rule", ["run:python -m mypy*", "run:pytest*", "run:.venv/bin/python -m mypy"])
def test_a_rule_for_another_command_does_not(rule: str, checked: CheckedProject) -> None:
    """No other words are read as those of the tests."""
    with pytest.raises(PermissionDeniedError, match="nobody can be asked"):
        write_own_python(checked).check(run_tests, allow=[rule])


@pytest.mark.parametrize("timeout", [0, -1, "10", True, None, float("nan"), float("inf"), 3601])
def test_no_time_is_told(checked: CheckedProject, timeout: Any) -> None:
    """A limit that is none gives one clear message before anybody is asked."""
    with pytest.raises(AgentError, match="`timeout` must be a number of seconds"):
        checked.check(run_tests, {"timeout": timeout}, allow=())


def test_a_role_without_execute_runs_nothing(play: Player) -> None:
    """Neither code nor models of an agent get by `std/checks` what their role does not have."""
    program = """
        import "std/checks"
        role Talker { can talk }
        agent Main : Talker { on go(args: Json) { return await runTests() } }
        """
    played = play(program, [], allow=["shell"])

    assert "its role `Talker` lacks `execute`" in played.told


def test_the_person_is_asked(checked: CheckedProject) -> None:
    """The person reads the command, what it is for and for whom; a refusal starts nothing, and always is kept."""
    checked.write(GREEN)
    refusing, agreeing = Deciding(decision="no"), Deciding(decision="always")
    with pytest.raises(PermissionDeniedError, match="the person did not allow `python -m pytest`"):
        checked.check(run_tests, allow=(), host=refusing)
    results = checked.check_together(
        [(run_tests, None), (run_tests, {"files": ["adding.py"]})], allow=(), host=agreeing
    )

    assert ["run `python -m pytest`: to see whether the tests pass"] == refusing.requested
    assert ["run `python -m pytest adding.py`", "run `python -m pytest`"] == sorted(
        what.partition(":")[0] for what in agreeing.requested
    )
    assert [True, False] == [result["ok"] for result in results]


def test_what_a_project_has_comes_first(checked: CheckedProject) -> None:
    """The Python in `.venv` runs the tests, and that is what the person is asked for."""
    python = checked.write(GREEN).folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho mine\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    host = Deciding()
    result = checked.check(run_tests, allow=(), host=host)

    assert ["run `.venv/bin/python -m pytest`: to see whether the tests pass"] == host.requested
    assert (True, True) == (result["ok"], result["output"].startswith("mine\n"))


def test_old_bytecode_hides_no_change(checked: CheckedProject) -> None:
    """A file that is changed twice within a second, to the same length, is tested as it is."""
    results = [checked.write(files).check(run_tests)["ok"] for files in (GREEN, RED)]

    assert ([True, False], []) == (results, [*checked.folder.rglob("*.pyc")])


def test_a_folder_that_is_gone(checked: CheckedProject) -> None:
    """Where the folder of the program was removed, nothing is found in it, and no command can begin there."""
    checked.folder.rmdir()
    results = [checked.check(check) for check in (run_tests, run_lint, run_types, lambda _: run_command("true", None))]

    assert [(False, 0, 1)] * 4 == [*map(summary, results)]
    assert "`true` cannot be started: no such file or directory" == titles(results[3])[0]


JUDGES = {
    "pyproject.toml": ("[project]\nname = 'a'\n[tool.pytest]\nx = 1\n", "name = 'a'", "name = 'b'", "x = 1", "x = 2"),
    "package.json": ('{"name": "a", "scripts": {"test": "x"}}', '"a"', '"b"', '"x"', '"true"'),
    "setup.cfg": ("[metadata]\nname = a\n[tool:pytest]\nx = 1\n", "name = a", "name = b", "x = 1", "x = 2"),
}


@pytest.mark.parametrize("name", JUDGES)
def test_settings_of_tests_are_told_from_others(name: str, checked: CheckedProject) -> None:
    """Only those parts of a file count that say how tests run."""
    text, other, another, part, changed = JUDGES[name]
    before = hash_test_files(checked.write({name: text}).folder)

    same = hash_test_files(checked.write({name: text.replace(other, another)}).folder)
    different = hash_test_files(checked.write({name: text.replace(part, changed)}).folder)

    assert [name] == list(before)
    assert (before, True) == (same, before != different)
