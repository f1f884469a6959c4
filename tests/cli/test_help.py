"""The help of every command."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from koi_lang.cli import koi
from koi_lang.cli.command_table import COMMANDS, FOR_TOOLS, FOREIGN_WORDS, FORMER_COMMANDS, FORMER_OPTIONS, SECTIONS
from tests.projects import Project


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name: str) -> None:
    """It can be shown, for the commands below it, too, and names the command and its options."""
    context = click.Context(koi, info_name="koi")
    command = koi.get_command(context, name)
    assert command is not None
    below = command.list_commands(context) if isinstance(command, click.Group) else ()
    for words, each in {(name,): command, **{(name, one): command.get_command(context, one) for one in below}}.items():
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


@pytest.mark.parametrize("word", ["auth", "login", "key", "keys", "token", "credentials"])
def test_words_of_keys_lead_to_the_command_that_stores_them(word: str) -> None:
    """Whoever looks for a place to put a key finds `koi connect`, not a command of a similar name."""
    told = CliRunner().invoke(koi, [word], prog_name="koi")

    assert (2, True) == (told.exit_code, "Did you mean `koi connect`?" in told.stderr)


@pytest.mark.parametrize(("former", "current"), FORMER_COMMANDS.items())
def test_former_names_go_on_working(former: tuple[str, ...], current: tuple[str, ...]) -> None:
    """A former name does what the present one does, and says on stderr what that is."""
    runner = CliRunner()
    old, new = (runner.invoke(koi, [*words, "--help"], prog_name="koi") for words in (former, current))
    notice = (
        f"`koi {' '.join(former)}` is now `koi {' '.join(current)}`; the old name will be removed in the next release\n"
    )

    assert (0, new.stdout, notice) == (old.exit_code, old.stdout, old.stderr)


def test_former_options_go_on_working() -> None:
    """A former option does what the present one does, with its value behind it or in the same word."""
    runner = CliRunner()
    for words in (["--since", "7"], ["--since=7"]):
        done = runner.invoke(koi, ["runs", "costs", *words], prog_name="koi")

        assert "`--from 7` has no unit" in str(done.exception)
        assert "`--since` is now `--from`; the old name will be removed in the next release\n" == done.stderr


def test_former_options_are_none_of_their_command() -> None:
    """A former option of a command is no present one, and what it became is one."""
    for words, options in FORMER_OPTIONS.items():
        command: click.Command | None = koi
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(koi), word)
        assert command is not None
        known = {name for each in command.params for name in each.opts}

        assert not known & options.keys()
        assert known >= {*options.values()}
