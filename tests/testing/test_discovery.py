"""Which files hold tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.errors import UsageError
from koi_lang.testing import discovery
from koi_lang.testing.cases import Broken, Case, title
from tests.projects import Project

TEST = 'test "passes" { expect true }\n'


def found(*paths: str) -> list[str]:
    """The titles of the cases in some paths."""
    return [title(case) for case in discovery.find(paths)]


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty folder that is the current one."""
    monkeypatch.chdir(project.folder)
    return project


def test_folders_are_searched(here: Project) -> None:
    """`*.test.koi` at any depth, in the order of their paths; not in hidden folders and those of tools."""
    for name in ("b.test.koi", "a/c.test.koi", "plain.koi", ".hidden/d.test.koi", "node_modules/e.test.koi"):
        here.write(name, TEST)
    here.write("env/f.test.koi", TEST)
    here.write("env/pyvenv.cfg", "")

    assert ["a/c.test.koi: passes", "b.test.koi: passes"] == found(".")


def test_a_named_file_is_taken(here: Project) -> None:
    """Any Koi file can be named; each is taken once, in the order they are named in."""
    here.write("plain.koi", TEST)
    here.write("a.test.koi", TEST)

    assert ["plain.koi: passes", "a.test.koi: passes"] == found("plain.koi", ".", "a.test.koi")


@pytest.mark.parametrize("path", ["missing.koi", "notes.txt"])
def test_other_paths_are_wrong_usage(here: Project, path: str) -> None:
    """A path that does not exist, or a file of another kind, is said to be none."""
    here.write("notes.txt", "")

    with pytest.raises(UsageError, match=path):
        found(path)


def test_other_kinds_of_cases_fit_in(here: Project) -> None:
    """A collector for recorded runs finds them under `tests`, and hears whether to write them anew."""
    updates: list[bool] = []

    def collect(path: Path, update: bool) -> list[Case]:
        updates.append(update)
        return [Broken(path, "recorded", "recorded")]

    here.write("tests/run.jsonl", "")
    here.write("other/run.jsonl", "")

    cases = discovery.find(["."], update=True, collectors={".jsonl": collect})

    assert (["tests/run.jsonl: recorded"], [True]) == ([title(case) for case in cases], updates)
