"""The walks on the page about debugging."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages
from tests.dap.client import Client, debugging
from tests.dap.programs import record
from tests.projects import Project

PROGRAM = pages.ROOT / "examples" / "readme" / "debugged.koi"
WALKS = [block for block in pages.blocks(pages.manual()["docs/debugging.md"]) if block.kind == "debug"]


def launch(client: Client, path: Path, words: str) -> str:
    """Begin a session as `launch TARGET, breakpoints …` says."""
    client.launch({path: [int(line) for line in words.rpartition("breakpoints ")[2].split()]})
    return client.stop()


def shown(client: Client, path: Path, line: str) -> str:
    """What a line of a walk shows."""
    command, _, rest = line.partition(" ")
    if command == "launch":
        return launch(client, path, rest)
    if command == "print":
        return client.evaluate(rest)
    if command == "breakpoints":
        client.set_breakpoints(path, *map(int, rest.split()))
        return ""
    if command.startswith("."):
        client.evaluate(line)
        return client.stop()
    return client.go(command)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: f"line {walk.line}")
def test_a_walk_shows_what_the_page_says(project: Project, walk: pages.Block) -> None:
    """Each line of a walk is asked for, and answered as the page has it."""
    path = project.write("debugged.koi", PROGRAM.read_text("utf-8"))
    project.write("answers.json", PROGRAM.with_name("debugged.answers.json").read_text("utf-8"))
    target = record(project, "debugged.koi") if "launch RUN" in walk.text else "debugged.koi"
    told: list[str] = []

    with debugging(project, target, "--answers", "answers.json") as client:
        for line in (line[2:] for line in walk.text.splitlines() if line.startswith("> ")):
            answer = shown(client, path, line)
            told += [f"> {line}", *([answer] if answer else [])]

    assert told == walk.text.splitlines()
