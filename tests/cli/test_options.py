"""The options of all commands: one name for one thing, with one kind of value, wherever it can matter."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from koi_lang.cli import koi
from tests.projects import Project

# Every option by its spellings, with the value that it takes; `flag` stands for none.
OPTIONS = """
--about               TOPIC
--admin               flag
--all                 flag
--allow               RULE
--answer              TEXT
--answers             FILE
--arg                 NAME=VALUE
--args                JSON
--as                  ROLE
--ask                 flag
--ask-time            TIME
--at                  ENTRY
--branch              flag
--by                  day|model|program|agent
--check               flag
--color               WHEN
--connect             flag
--cost                flag
--count               N
--debug               flag
--delegated           flag
--diff                flag
--dry-run             flag
--durations           N
--event               NAME
--explain             flag
--files               flag
--fixed               TEXT
--format              FORMAT
--from                TIME
--full                flag
--html                flag
--http                HOST:PORT
--inspect             DIR
--intent              TEXT
--json                flag
--junit               FILE
--keys                FILE
--kind                KIND
--list                flag
--listen              HOST:PORT
--max-concurrency     WHOLE NUMBER
--max-requests        WHOLE NUMBER
--max-time            TIME
--max-tokens          WHOLE NUMBER
--max-turns           WHOLE NUMBER
--max-usd             NUMBER
--max-usd-per-case    NUMBER
--name                HOST
--no                  ID
--no-browser          flag
--no-cache            flag
--no-extensions       flag
--no-memory           flag
--no-open             flag
--no-plans            flag
--no-test             flag
--no-token            flag
--offline             flag
--older               TIME
--on-doubt            DECISION
--once                flag
--order               ORDER
--orders              N
--override            flag
--own                 flag
--plain               flag
--plan                flag
--playbook            flag
--port                INTEGER RANGE
--program             FILE
--public-url          URL
--pydantic            flag
--record-dir          DIR
--record/--no-record  flag
--refresh             flag
--rehearse            flag
--remove              flag
--resume              ID
--result              flag
--run                 ID
--run-code            flag
--runs                N|ID
--seed                TEXT
--search              WORDS
--secret              flag
--simulate            flag
--since               RUN
--skill               flag
--start-servers       flag
--status              flag
--stdin               flag
--stdio               flag
--stop-on-entry       flag
--strict              flag
--supersedes          ID
--template            chat|team|coder|mcp|batch
--think               flag
--to                  ENTRY
--token               TEXT
--token-file          FILE
--trust               flag
--trust-folder        flag
--typescript          flag
--update              flag
--url                 URL
--user                NAME
--watch               flag
--why                 NAME
--within              TIME
--yes                 flag
-c                    CODE
-e, --effort          none|low|medium|high
-f, --follow          flag
-i, --rounds          WHOLE NUMBER
-j, --jobs            N
-k                    TEXT
-m, --model           MODEL
-n, --cases           N
-o, --output          FILE
-q, --quiet           flag
-v, --verbose         flag
-x, --exitfirst       flag
"""
# Options that one command uses for something else, with the value that they take there.
EXCEPTIONS = {
    ("learn", "--yes"): "ID",  # beside `--no ID`: what is done is named
    ("ask", "--program"): "NAME",
    ("runs tail", "-n, --lines"): "N",
}
# What starts a handler, or goes on with one.
STARTING = {"run", "ask", "debug", "prompt", "resume"}
# What shows a run at work; a conversation and the prompt draw, too.
DRAWING = {"run", "do", "think", "resume", "ask", "chat", "repl", "runs attach"}
# What runs programs, and what says beforehand what they would do.
RUNNING = {"run", "do", "think", "resume", "chat", "repl", "eval", "rpc", "acp", "serve http", "serve mcp"}
WHEREVER = {
    "--arg": STARTING,
    "--args": STARTING,
    "--plain": DRAWING,
    "--allow": RUNNING | {"audit", "debug"},
    "--rehearse": (RUNNING | {"debug"}) - {"eval", "resume"},
    "--model": RUNNING | {"audit", "prompt", "debug"},
    "--effort": RUNNING,
    **{f"--max-{limit}": RUNNING | {"audit"} for limit in ("turns", "requests", "tokens", "usd")},
    "--max-concurrency": RUNNING,
    "--max-time": RUNNING | {"test"},
    "--since": {"run", "eval"},
    "--result": {"run", "resume"},
    "--from": {"runs costs", "runs export"},
}


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands of a group that do something, by their words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{before}{name}", command


def options() -> Iterator[tuple[str, click.Option]]:
    """Every option that the help of a command shows, with the words of the command."""
    for words, command in commands(koi):
        yield from ((words, each) for each in command.params if isinstance(each, click.Option) and not each.hidden)


def spelling(option: click.Option) -> str:
    """What an option is called, as the table has it."""
    names = ", ".join(sorted(option.opts, key=len))
    return f"{names}/{option.secondary_opts[0]}" if option.secondary_opts else names


def value(option: click.Option) -> str:
    """What an option takes."""
    if option.is_flag:
        return "flag"
    choice = option.type if isinstance(option.type, click.Choice) else None
    return (option.metavar or "").strip("[]") or ("|".join(choice.choices) if choice else option.type.name.upper())


def test_an_option_is_one_thing() -> None:
    """An option is spelled in one way and takes one kind of value in all commands; the table has each of them."""
    known = dict(line.rsplit("  ", 1) for line in OPTIONS.strip().splitlines())
    table = {name.strip(): each for name, each in known.items()}
    actual = {
        (spelling(option), value(option))
        for words, option in options()
        if EXCEPTIONS.get((words, spelling(option))) != value(option)
    }

    assert sorted(table.items()) == sorted(actual)


def test_a_long_name_has_one_spelling() -> None:
    """No two options of the table share a name, such as a letter, and exceptions are not in it."""
    names = [
        name for line in OPTIONS.strip().splitlines() for name in line.rsplit("  ", 1)[0].replace("/", ", ").split(", ")
    ]

    assert [] == [name for name in {*names} if names.count(name) > 1]


def test_options_are_wherever_they_matter() -> None:
    """Whoever knows an option of one command finds it with each other one for which it means something."""
    where = {name: {words for words, option in options() if name in option.opts} for name in WHEREVER}
    every = {words for words, _ in commands(koi)}

    assert WHEREVER == where
    assert every == {words for words, option in options() if "--color" in option.opts}


@pytest.mark.parametrize("words", ["run a.koi", "ask http://127.0.0.1:9 A.go", "debug a.koi"])
def test_arguments_are_one_object(project: Project, words: str) -> None:
    """`--args` is checked alike by all commands that start a handler."""
    project.write("a.koi", "role R { can execute } agent A : R { on go(args: Json) { } } run A.go({})")
    done = project.koi(*words.split(), "--args", "[1]")

    assert (2, "") == (done.returncode, done.stdout)
    assert "`--args` takes one JSON object" in done.stderr
