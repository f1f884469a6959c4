"""Completion in bash, zsh and fish, as a person sees it who presses the key."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pexpect
import pytest

from koi_lang.cli import koi
from koi_lang.cli.completing.shells import SHELLS
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Host : Worker {
      on greet(args: Json) { console.log("hi") }
      private on welcome() { }
    }
    agent Other : Worker { on leave() { } }
    run Host.greet({})
    """
# What is typed, and the line after the key; `RUN` is the id of the recorded run, and `RU` the beginning of it.
LINES = (
    ("koi vers", "koi version"),
    ("koi run --rehe", "koi run --rehearse"),
    ("koi run gre", "koi run greeter.koi"),
    ("koi run sub/", "koi run sub/deep.koi"),
    ("koi run my", "koi run 'my program.koi'"),
    ("koi run --answers an", "koi run --answers answers.json"),
    ("koi runs show RU", "koi runs show RUN"),
    ("koi check --explain e0203", "koi check --explain E0203"),
    ("koi list std revi", "koi list std review"),
    ("koi chat greeter.koi Ho", "koi chat greeter.koi Host"),
    ("koi prompt greeter.koi Host.we", "koi prompt greeter.koi Host.welcome"),
    ("koi completion f", "koi completion fish"),
)
START = {
    "bash": (["--norc", "--noprofile", "-i"], "bind 'set bell-style none'; PS1='> '"),
    "zsh": (["-f", "-i"], "unsetopt BEEP PROMPT_SP; autoload -U compinit; compinit -u -D; PS1='> '"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs, a recorded run, and a command `koi` that is forked."""
    project = Project(tmp_path_factory.mktemp("completion"))
    for name in ("greeter.koi", "sub/deep.koi", "my program.koi"):
        project.write(name, PROGRAM)
    project.write("answers.json", "[]")
    project.koi("run", "greeter.koi")
    command = project.write("bin/koi", f'#!/bin/sh\nexec {shlex.join(forks.koi())} "$@" </dev/null\n')
    command.chmod(0o755)
    return project.folder


def environment(folder: Path) -> dict[str, str]:
    """The variables of a shell that finds this `koi` and writes nothing but text."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**Project(folder).environment, "PATH": path, "TERM": "dumb", "HOME": str(folder), "LC_ALL": "C.UTF-8"}


def run_id(folder: Path) -> str:
    """The id of the recorded run."""
    (journal,) = (folder / ".koi" / "runs").glob("*.jsonl")
    return journal.stem


@contextmanager
def shell(name: str, folder: Path) -> Iterator[pexpect.spawn]:
    """An interactive shell with completion, at its prompt."""
    words, prepare = START[name]
    child = pexpect.spawn(
        name, words, cwd=folder, env=environment(folder), encoding="utf-8", timeout=LIMIT_S, echo=False
    )
    child.delaybeforesend = None
    try:
        child.sendline(f'{prepare}; eval "$(koi completion {name})"; echo read"y"')
        child.expect("ready")
        yield child
    finally:
        child.close(force=True)


def with_run(line: str, run: str) -> str:
    """A line with the id of a run, or the beginning of it."""
    return line.replace("RUN", run).replace("RU", run[:6])


def completed(child: pexpect.spawn, typed: str) -> str:
    """The line that is there after the key, printed word by word."""
    child.send(f"{typed}\t")
    # The rest of a word comes before what is typed next; so does nothing, where the word was complete.
    child.send('\x01printf "<%s>" \x05 ;echo END\r')
    child.expect(r"(<[^\r\n]*>)END")
    return str(child.match[1])


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.needs(name)) for name in START])
def test_the_key_completes_a_word(name: str, folder: Path) -> None:
    """Commands, options, programs and folders, files, runs, codes, parts of the library, agents and handlers."""
    run = run_id(folder)
    with shell(name, folder) as child:
        lines = [completed(child, with_run(typed, run)) for typed, _ in LINES]

    assert ["".join(f"<{word}>" for word in shlex.split(with_run(line, run))) for _, line in LINES] == lines


@pytest.mark.needs("fish")
def test_fish_completes_a_word(folder: Path) -> None:
    """The same, asked of fish itself; it shows what a value is, too."""
    run = run_id(folder)
    asked = "; ".join(f"complete -C {shlex.quote(with_run(typed, run))}; echo ==" for typed, _ in LINES)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"koi completion fish | source; {asked}"],
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=LIMIT_S, check=True,
    )  # fmt: skip

    found = [part.splitlines()[0].partition("\t")[0] for part in done.stdout.split("==\n")[:-1]]
    assert [shlex.split(with_run(line, run))[-1] for _, line in LINES] == found
    assert "E0203\t" in done.stdout


@pytest.mark.parametrize("typed", [["koi", ""], ["koi", "run", "--"], ["koi", "runs", "show", ""]])
def test_completing_is_quick(typed: list[str], project: Project) -> None:
    """No SDK, no parser and no loop of events is imported to say what may come next."""
    script = """
        import sys
        from koi_lang.cli import main
        try:
            main([])
        finally:
            print("modules", *sys.modules, file=sys.stderr)
        """
    words = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1), "_KOI_COMPLETE": "bash_complete"}
    done = project.python(script, **words)

    assert done.returncode == 0
    loaded = set(done.stderr.rpartition("modules ")[2].split())
    assert set() == loaded & {"openai", "anthropic", "mcp", "lark", "keyring", "httpx2"}


@pytest.mark.parametrize("name", SHELLS)
def test_the_shell_of_the_person_is_taken(name: str, project: Project) -> None:
    """Without a name the script is that of `SHELL`; where that is another one, the command says what to write."""
    known, other = (
        project.python("from koi_lang.cli import main; main(['completion'])", SHELL=f"/bin/{each}")
        for each in (name, "tcsh")
    )

    assert (known.stdout, known.stderr) == (project.koi("completion", name).stdout, "")
    assert (2, "") == (other.returncode, other.stdout)
    assert "`koi completion bash`" in other.stderr


def test_programs_are_completed_wherever_they_stand() -> None:
    """An argument called `file`, `files` or `paths` of any command offers programs."""
    context = click.Context(koi)
    commands = {name: koi.get_command(context, name) for name in koi.list_commands(context)}
    kinds = {
        name: {item.type for item in argument.shell_complete(context, "")}
        for name, each in commands.items()
        for argument in (each.params if each else [])
        if isinstance(argument, click.Argument) and argument.name in ("file", "files", "paths")
    }

    assert len(kinds) > 8
    assert {} == {name: found for name, found in kinds.items() if found != {"koi"}}
