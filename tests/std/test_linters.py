"""`runLint` and `runTypes` of `std/checks` against the real ruff and mypy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.std.checks.runner import run_lint, run_tests, run_types
from tests.std.checking import Check, CheckedProject, summary, titles

pytestmark = pytest.mark.usefixtures("tools")

CLEAN = 'def greet(name: str) -> str:\n    return f"hello {name}"\n'
UNUSED = {
    "severity": "important",
    "title": "F401: `os` imported but unused",
    "where": "greeting.py:1",
    "fix": "Remove unused import: `os`",
}
WRONG = {
    "severity": "important",
    "title": 'return-value: Incompatible return value type (got "str", expected "int")',
    "where": "greeting.py:2",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("check", "settings"), [(run_lint, "ruff.toml"), (run_types, "mypy.ini")])
@pytest.mark.parametrize("is_set_up", [True, False])
def test_clean_files_are_ok(checked: CheckedProject, check: Check, settings: str, is_set_up: bool) -> None:
    """With settings, and without them where the tool is installed, clean files are ok: one tool has passed."""
    checked.write(
        {"greeting.py": CLEAN, **({settings: "[mypy]\n" if settings == "mypy.ini" else ""} if is_set_up else {})}
    )
    result = checked.check(check)

    assert ((True, 1, 0), []) == (summary(result), result["findings"])


@pytest.mark.parametrize(
    ("check", "text", "finding"),
    [(run_lint, f"import os\n\n\n{CLEAN}", UNUSED), (run_types, CLEAN.replace("-> str", "-> int"), WRONG)],
)
def test_what_is_wrong_is_important(
    checked: CheckedProject, check: Check, text: str, finding: Mapping[str, str]
) -> None:
    """Each problem is a finding with its file, its line, and what mends it where the tool knows that."""
    result = checked.write({"greeting.py": text}).check(check)

    assert ((False, 0, 1), [finding]) == (summary(result), result["findings"])


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("check", "files", "title"),
    [
        (run_lint, {"a.py": "x = (\n"}, "invalid-syntax: unexpected EOF while parsing"),
        (run_types, {"a.py": "x = (\n"}, "syntax: Unexpected EOF while parsing"),
        (run_lint, {"ruff.toml": "nonsense = 1", "a.py": ""}, "could not read the report of ruff: it wrote none (exit"),
        (run_types, {"mypy.ini": "[mypy]\nplugins = gone\n", "a.py": ""}, "mypy ended with exit code 2, though its"),
        (run_lint, {"ruff.toml": "exclude = ['*']", "a.py": "x = (\n"}, "ruff found nothing to check"),
        (run_types, {"mypy.ini": "[mypy]\nexclude = .*\n", "a.py": ""}, "mypy found nothing to check"),
        (run_lint, {"ruff.toml": ""}, "no linter is set up for anything in this folder"),
        (run_types, {"mypy.ini": "[mypy]\n"}, "no type checker is set up for anything in this folder"),
        (run_lint, {}, "no linter is set up for anything in this folder"),
        (run_types, {"notes.txt": ""}, "no type checker is set up for anything in this folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_never_ok(
    checked: CheckedProject, check: Check, files: Mapping[str, str], title: str
) -> None:
    """Files that are no code, settings that are none, and nothing to check are findings."""
    result = checked.write(files).check(check)

    assert (False, 0, 1) == summary(result)
    assert title in titles(result)[0]
    assert "important" == result["findings"][0]["severity"]


def test_settings_say_which_files_mypy_checks(checked: CheckedProject) -> None:
    """Where its settings name files, others are not checked; another section does not count."""
    files = {"good.py": CLEAN, "bad.py": "x: int = ''\n"}
    named = checked.write({**files, "mypy.ini": "[mypy]\nstrict = true\nfiles = good.py\n"}).check(run_types)
    others = checked.write({"mypy.ini": "[mypy]\n[mypy-x]\nfiles = good.py\n"}).check(run_types)

    assert [True, False] == [named["ok"], others["ok"]]


@pytest.mark.parametrize("name", ["mit leer.py", "größe.py", "--fix.py", "$(touch made).py", "'; touch made;'.py"])
def test_any_name_is_a_name(checked: CheckedProject, name: str) -> None:
    """Names of files are neither options nor parts of a command, and findings name them as they are."""
    result = checked.write({name: "import os\n"}).check(run_lint, {"files": [name]})

    assert [f"{name}:1"] == [finding["where"].removeprefix("./") for finding in result["findings"]]
    assert {name} == {path.name for path in checked.folder.iterdir() if not path.name.startswith(".")}


def test_names_cannot_hide_anything(checked: CheckedProject) -> None:
    """A line break in a name does not make a line of its own, in findings as little as for the person."""
    result = checked.write({"a\nb.py": "import os\n"}).check(run_lint)

    assert ["a⏎b.py:1"] == [finding["where"] for finding in result["findings"]]


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        (["../x.py"], PermissionDeniedError, "lies outside of the project"),
        (["/etc/passwd"], PermissionDeniedError, "lies outside of the project"),
        (["a/../../x.py"], PermissionDeniedError, "lies outside of the project"),
        ([".env"], PermissionDeniedError, "is hidden from programs"),
        (["gone.py"], AgentError, "there is no file `gone.py`"),
        (["a\nb.py"], AgentError, "is no path"),
        ([""], AgentError, "is no path"),
        ("a.py", AgentError, "`files` must be a list of paths"),
        ([1], AgentError, "`files` must be a list of paths"),
        (["a.py"] * 501, AgentError, "501 files are too many"),
    ],
)
def test_files_outside_are_refused(checked: CheckedProject, files: Any, kind: type[Exception], message: str) -> None:
    """Files are those of the project, and must be there; nobody is asked before."""
    with pytest.raises(kind, match=message):
        checked.check(run_lint, {"files": files}, allow=())


def test_some_files_only(checked: CheckedProject) -> None:
    """Only the files that were named are checked, folders with all in them; those for no tool are told."""
    checked.write({"a.py": CLEAN, "b/c.py": "import os\n", "notes.txt": "", "test_a.py": "def test(): assert 0\n"})
    checked.write({"test_b.py": "def test(): pass\n"})
    one, folder, none = (checked.check(run_lint, {"files": [name]}) for name in ("a.py", "b", "notes.txt"))
    tests = checked.check(run_tests, {"files": ["test_b.py"]})

    assert [(True, 1, 0), (False, 0, 1), (False, 0, 1), (True, 1, 0)] == [*map(summary, (one, folder, none, tests))]
    assert ["none of the files is for the tools of this folder: ruff"] == titles(none)


@pytest.mark.parametrize("options", ["a.py", 5, ["a.py"], True])
def test_options_are_an_object(checked: CheckedProject, options: Any) -> None:
    """Anything else gives one clear message."""
    with pytest.raises(AgentError, match="are no options"):
        checked.check(run_lint, options)


def test_a_misspelt_option_is_told(checked: CheckedProject) -> None:
    """What is no option is not passed over."""
    with pytest.raises(AgentError, match="there is no option `timeOut`"):
        checked.check(run_lint, {"timeOut": 5})
