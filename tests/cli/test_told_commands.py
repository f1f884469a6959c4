"""Command lines that messages, help texts and pages of the library tell a person to type."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from koi_lang.cli import koi
from tests.package_trees import sources

# A whole command line in a message; a pipe, or what a shell does, is not part of it.
LINE = re.compile(r"`(?:echo \S+ \| )?(koi(?: [^`|]+)?)`")
# What stands in a command line for something of the person, and what they may type there.
MEANT = {
    "FILE": "a.koi", "PATH": "a.koi", "PROGRAM": "a.koi", "OTHER.koi": "a.koi", "ID": "last", "RUN": "last",
    "ENTRY": "1", "N": "5", "USD": "0.5", "TIME": "5m", "CODE": "E0500", "MODEL": "local/x", "ADDRESS": "http://127.0.0.1:1",
    "URL": "http://127.0.0.1:1", "NAME": "name", "AGENT": "A", "KEY": "name", "TEXT": "text", "RULE": "run",
}  # fmt: skip
# Parts of command lines that a message computes.
COMPUTED = "a.koi"


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Every text of a module, with a stand-in for what is computed in it."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else COMPUTED for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def told_commands() -> list[tuple[str, str]]:
    """Every command line in a text of the package, with the module that has it."""
    told = {name: text for name, text in sources().items() if "`koi" in text or "| koi" in text}
    texts = ((name, text) for name, source in told.items() for text in texts_of(ast.parse(source)))
    found = {line: name for name, text in texts for line in LINE.findall(text)}
    return sorted(found.items())


def typed(line: str) -> list[str]:
    """A command line as a person types it: words that stand for something are replaced, what is left open goes."""
    words = shlex.split(line.partition(" < ")[0].replace("…", "").replace("[", "").replace("]", ""))[1:]
    words = [word for word in words if not word.startswith(f"--{COMPUTED}")]  # of an option whose name is computed
    entries = {at + 1 for at, word in enumerate(words) if word in ("--at", "--to")}
    known = ("ENTRY" if at in entries and word == COMPUTED else word for at, word in enumerate(words))
    return [MEANT.get(word, word.split("|")[0]) for word in known]


def refusal(words: list[str]) -> str:
    """What the parser of the command line says against some words; empty where it takes them. Nothing is run."""
    command: click.Command = koi
    name = "koi"
    while isinstance(command, click.Group) and words and words[0] != "name" and not words[0].startswith("-"):
        context = click.Context(command, info_name=name)
        found = command.get_command(context, words[0])
        if found is None:
            is_program = words[0].endswith(".koi") and name in ("koi", "serve")
            return "" if is_program else f"`{name}` has no command `{words[0]}`"
        command, name, words = found, words[0], words[1:]
    if not words or words == ["name"]:
        return ""  # a text that names the command alone
    try:
        command.make_context(name, list(words))
    except (click.exceptions.Exit, click.exceptions.BadOptionUsage):
        return ""  # it shows help, or the text names an option without its value
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file that stands for those of a person."""
    (tmp_path / "a.koi").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_can_be_typed(folder: Path) -> None:
    """The command exists, and takes these options and so many words."""
    lines = told_commands()
    refused = {f"{name}: {line}": why for line, name in lines if (why := refusal(typed(line)))}

    assert {} == refused
    assert len(lines) > 100


def test_a_command_that_does_not_exist_is_found(folder: Path) -> None:
    """The test would see a command, an option or a word too many."""
    wrong = ("koi rune FILE", "koi runs shew ID", "koi run --max-tuns N FILE", "koi undo ID ID")

    assert all(refusal(typed(line)) for line in wrong)
