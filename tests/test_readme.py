"""The README: the programs it shows are files, and what it says comes of them does."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from koi_lang.cli.chat.commands import COMMANDS
from koi_lang.diagnostics import render
from koi_lang.llm.scripted import read_answers
from koi_lang.program import build
from koi_lang.rpc import commands, dispatcher  # noqa: F401  (the dispatcher fills the table)
from tests import pages
from tests.projects import Project
from tests.running import run_file

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROGRAMS = ROOT / "examples" / "readme"
BLOCKS = pages.blocks(README)
# Pieces of a program that is nowhere as a whole, by what they begin with.
PIECES = ("agent Clerk", "export function slug")
TESTS = 'import "./greeter.koi"'
CLEAN = sorted(path.name for path in PROGRAMS.glob("*.koi") if path.name != "oops.koi")


def block_of(start: str) -> str:
    """The text of the block that begins like this."""
    (text,) = [block.text for block in BLOCKS if block.text.startswith(start)]
    return text


@pytest.fixture
def programs(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The files of the README in a folder of their own, which is the current one."""
    shutil.copytree(PROGRAMS, project.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".koi"))
    monkeypatch.chdir(project.folder)
    return project


def test_what_is_shown_is_a_file() -> None:
    """Every program in the README stands word for word in an example."""
    files = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.koi")]
    programs = [block.text for block in BLOCKS if block.kind == "koi" and not block.text.startswith((*PIECES, TESTS))]

    assert [] == [text for text in programs if not any(text in file for file in files)]


@pytest.mark.parametrize("name", CLEAN)
def test_a_program_is_clean(name: str) -> None:
    """No check has anything to say about a program of the README but the one that shows what a check says."""
    assert () == build.check(str(PROGRAMS / name), strict=True).diagnostics


def test_a_check_says_this(programs: Project) -> None:
    """The mistake is told as the README shows it."""
    (found,) = build.check("oops.koi").diagnostics

    assert block_of(f"error: {found.message}") == render(found, programs.folder.as_posix()) + "\n"


@pytest.mark.parametrize("name", ["trace", "lead"])
def test_a_run_ends_like_this(name: str, programs: Project) -> None:
    """A run ends with the error that the README shows."""
    answers = programs.folder / f"{name}.answers.json"
    outcome = run_file(
        programs.folder / f"{name}.koi", programs.folder, answers=read_answers(answers) if answers.exists() else None
    )
    told = pages.shown(outcome, programs.folder).removeprefix("".join(f"{line}\n" for line in outcome.printed))

    assert block_of(told.split("\n")[0]) == told


def test_a_recorded_run_prints_this(programs: Project) -> None:
    """The program whose journal the README shows prints what stands there, and adds a line to a file."""
    words = ("--answers", "notes.answers.json", "--allow", "shell", "notes.koi")
    done = programs.koi("run", *words, stdin="Files\n")

    assert ("counted 5 words\nnoted Files\n", 0) == (done.stdout, done.returncode), done.stderr
    assert (programs.folder / "notes.txt").read_text() == "Files: 5\n"
    assert [] == [line for line in done.stdout.splitlines() if f"\n{line}\n" not in README]


def test_tests_say_this(programs: Project) -> None:
    """The tests in the README pass and fail as it says."""
    programs.write("greeter.test.koi", block_of(TESTS))
    told = programs.koi("test", "greeter.test.koi").stdout

    assert block_of("$ koi test\nfailed").partition(" in ")[0] == f"$ koi test\n{told}".rpartition(" in ")[0]


def test_a_session_in_python_says_this(programs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python gives the results that the README shows."""
    monkeypatch.syspath_prepend(str(programs.folder))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    assert (0, 5) == tuple(pages.replayed(block_of(">>> import asyncio, koi_lang\n")))


def test_every_command_of_other_surfaces_is_named() -> None:
    """The table of `koi rpc` and the list of `koi chat` hold the commands that there are, and no others."""
    table = "".join(re.findall(r"^\| (?:begin|talk|hold, end|look|change|list) \| (.*) \|$", README, re.MULTILINE))
    answers = {"approve", "answer"}
    (chat,) = re.findall(r"^Commands: `(.*?)`", README, re.MULTILINE | re.DOTALL)

    assert {each.name for each in commands.known()} - answers == {*re.findall(r"`(\w+)`", table)}
    assert set(COMMANDS) == set(chat.split())


def test_packages_are_counted() -> None:
    """`koi doctor` counts the packages that the project depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert f"and the {len(project['dependencies'])} packages it needs" in README
