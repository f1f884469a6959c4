"""The help of every command."""

from __future__ import annotations

import re

import click
import pytest

from koi_lang.cli import koi
from koi_lang.cli.command_table import COMMANDS, FOR_TOOLS, FOREIGN_WORDS, SECTIONS
from tests.projects import Project


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name: str) -> None:
    """It can be shown, for the commands below it, too, and names the command and its options."""
    context = click.Context(koi, info_name="koi")
    command = koi.get_command(context, name)
    assert command is not None
    below = command.commands if isinstance(command, click.Group) else {}
    for words, each in {(name,): command, **{(name, one): found for one, found in below.items()}}.items():
        told = each.get_help(click.Context(each, info_name=" ".join(words), parent=context))

        assert told.startswith(f"Usage: koi {' '.join(words)} ")
        assert "--help" in told


def test_the_help_has_sections(project: Project) -> None:
    """`koi`, `koi --help` and `koi help` list what people use by purpose; `koi help all` adds what tools use."""
    short, *same = (project.koi(*words).stdout for words in ((), ("--help",), ("help",)))
    every = project.koi("help", "all").stdout
    headings, names = (re.findall(pattern, short, re.MULTILINE) for pattern in (r"^(\w.*):$", r"^  ([a-z]+) {2,}"))

    assert [short, short] == same
    assert ["Options", *(title for title in SECTIONS if title != FOR_TOOLS)] == headings
    assert [name for title, rows in SECTIONS.items() if title != FOR_TOOLS for name in rows] == names
    assert [*COMMANDS] == re.findall(r"^  ([a-z][a-z-]*) {2,}", every, re.MULTILINE)
    assert max(map(len, every.splitlines())) <= 80


def test_the_help_of_a_command_is_that_of_its_option(project: Project) -> None:
    """`koi help WORDS` is `koi WORDS --help`; an unknown word gets the usual advice."""
    shown, unknown = project.koi("help", "runs", "costs"), project.koi("help", "lint")

    assert project.koi("runs", "costs", "--help").stdout == shown.stdout
    assert (2, True) == (unknown.returncode, "Did you mean `koi check`?" in unknown.stderr)


@pytest.mark.parametrize(("word", "ours"), FOREIGN_WORDS.items())
def test_words_of_other_tools_lead_to_commands(word: str, ours: str) -> None:
    """A word that other tools use is no command here, and leads to one that there is."""
    name, *below = (each for each in ours.split() if not each.startswith("-"))
    command = koi.get_command(click.Context(koi), name)

    assert word not in COMMANDS
    assert [] == below or (isinstance(command, click.Group) and below[0] in command.list_commands(click.Context(koi)))
