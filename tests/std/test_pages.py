"""The pages of the standard library, whose examples are run, and the command that shows them."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from koi_lang.cli.list.std import files, part
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.symbols import own_symbols
from koi_lang.program import build
from koi_lang.system import resources
from tests import forks, pages
from tests.projects import Project
from tests.wheel import Installed

NAMES = [path.stem for path in files()]


def example_of(name: str) -> pages.Example:
    """The program on a page."""
    (example,) = pages.examples((resources.standard_skills() / f"{name}.md").read_text("utf-8"))
    return example


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("tools")
def test_a_page_tells_the_truth(name: str, project: Project) -> None:
    """The example on a page prints what the page says."""
    example = example_of(name)

    assert example.told == pages.shown(example.run(project.folder), project.folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_clean(name: str) -> None:
    """No check has anything to say about a part of the standard library or the example on its page."""
    assert build.check(str(resources.standard_skills() / f"{name}.koi"), strict=True).diagnostics == ()


@pytest.mark.parametrize("name", NAMES)
def test_everything_says_what_it_is_for(name: str) -> None:
    """Parts, skills, functions and events have a description of their own, which prompts and `koi list std` show."""
    described = part(resources.standard_skills() / f"{name}.koi")
    entries = [(group.about, entry.about) for group in described.groups for entry in group.entries]

    assert described.about
    assert [about for group, about in entries if not about or about == group] == []


def test_names_are_used_once() -> None:
    """All parts can be imported into one program: no two declare the same name."""
    units = [unit_of(path) for path in files()]
    names = Counter(
        (symbol.kind, symbol.name) for unit in units for symbol in own_symbols(unit) if symbol.kind != "module"
    )
    values = Counter(name for kind, name in names if kind not in ("role", "skill"))

    assert [name for name, count in (names + Counter()).items() if count > 1] == []
    assert [name for name, count in values.items() if count > 1] == []


def unit_of(path: Path) -> Unit:
    """A file of the standard library, parsed."""
    return next(file.unit for file in build.check(str(path)).files if file.unit.path == path.as_posix())


def koi(*words: str) -> subprocess.CompletedProcess[str]:
    """What a command prints."""
    return forks.run(words, forks.CHECKOUT, os.environ)


def test_the_command_lists_and_shows() -> None:
    """`koi list std` lists each part with its functions, and prints the page of one; a mistyped name is reported."""
    listed, page, missing = koi("list", "std"), koi("list", "std", "std/csv"), koi("list", "std", "cvs")

    assert [line.partition(" ")[0] for line in listed.stdout.splitlines() if line.startswith("std/")] == [
        f"std/{name}" for name in NAMES
    ]
    assert "  uses skill Csv\n    readCsv(text: string, delimiter?: string): any[]\n" in listed.stdout
    assert page.stdout == (resources.standard_skills() / "csv.md").read_text("utf-8")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "did you mean `csv`?" in missing.stderr


def test_the_list_as_json() -> None:
    """`--json` gives data: parts, their skills and teams, and the entries of each."""
    listed, one = (
        json.loads(koi("list", "std", "--json").stdout),
        json.loads(koi("list", "std", "debate", "--json").stdout),
    )

    assert [each["name"] for each in listed] == NAMES
    assert one["groups"][0]["kind"] == "team"
    assert one["groups"][0]["entries"][0]["signature"].startswith("moderator::debate(motion: string, facts?: string")
    assert one["page"].startswith("# std/debate\n")


def test_the_wheel_brings_the_library(installed: Installed) -> None:
    """What a user installs has all pages and rubrics, and its parts can be imported."""
    program = installed.folder / "library.koi"
    program.write_text(example_of("csv").program)
    ran = installed.run("-m", "koi_lang", "run", "--no-record", "library.koi")
    listed = installed.run("-m", "koi_lang", "std", "csv")
    explained = installed.run("-m", "koi_lang", "std", "judge", "--why", "general")

    assert (ran.stdout, ran.returncode) == (example_of("csv").told, 0), ran.stderr
    assert listed.stdout.startswith("# std/csv\n")
    assert explained.stdout.startswith("general: Judges the answer to a task of any kind.\n"), explained.stderr
