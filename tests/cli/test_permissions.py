"""`koi permissions`: rules as a person reads them, and takes them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.settings.lasting_rules import LastingRules
from tests.projects import Project


@pytest.fixture
def kept(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LastingRules:
    """Rules that are kept for the folder: two commands, a folder of files, and one that nobody can read."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "config"))
    (project.folder / "sub").mkdir()
    rules = LastingRules.of(project.folder)
    for cwd, command in ((None, "git  status"), ("sub", 'echo "a\nb"')):
        rules.keep(command_permission(command, place_of(cwd, project.folder)).lasting_rule)
    for rule in ("write=src/", "shell=broken"):
        rules.keep(rule)
    return rules


def test_commands_are_listed_as_they_are_written(project: Project, kept: LastingRules) -> None:
    """A rule for a command shows the command, and its folder where that is another one, on one line."""
    listed = project.koi("permissions").stdout.splitlines()

    assert ["run git status", 'run echo "a b" in sub', "write=src/", "shell=broken"] == listed


def test_a_rule_is_removed_as_it_is_listed(project: Project, kept: LastingRules) -> None:
    """The form in which it is kept works, too; one that is misspelled is answered with the nearest."""
    raw = kept.rules()[1]
    removed = project.koi("permissions", "remove", "run git status", raw)
    wrong = project.koi("permissions", "remove", "write=scr/")

    assert 'removed run git status\nremoved run echo "a b" in sub\n' == removed.stdout
    assert ["write=src/", "shell=broken"] == list(kept.rules())
    assert (2, True) == (wrong.returncode, '= help: Did you mean "write=src/"?' in wrong.stderr)
