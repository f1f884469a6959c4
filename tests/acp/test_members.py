"""Agents that are processes as members of teams; the agent is a program of Koi, served by `koi acp`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.playbook.playing import act
from tests.projects import Project

LEAD = """
    role Chief { can delegate, can execute }
    team Desk { helper: acp://koi/acp/helper.koi/--answers/helper.json }
    agent Lead : Chief {
      uses team Desk
      on start(args: { message: string }) {
        try {
          console.log(await send peers.event("ask").any()({ message: args.message }))
        } catch (error) {
          console.log(error.message)
        }
      }
    }
    run Lead.start({ message: "make it" })
    """
HELPER = '''
    role Worker { can execute }
    agent Helper : Worker {
      on chat(args: { message: string }) { playbook """{{args.message}}""" }
    }
    '''


@pytest.fixture
def team(project: Project) -> Project:
    """A project with a lead, and a helper that runs a command."""
    project.write("main.koi", LEAD)
    project.write("helper.koi", HELPER)
    said = [act("shell", command="touch made", description="x"), {"intent": "return", "data": "Made it."}]
    project.write("helper.json", json.dumps(said))
    return project


def run(project: Project, *words: str, **more: str) -> tuple[str, str]:
    """What a run prints, and what it says on stderr."""
    bin = Path(forks.command(project.folder / "bin")).parent
    path = os.pathsep.join([str(bin), os.environ["PATH"]])
    done = project.koi("run", "main.koi", *words, PATH=path, **more)
    return done.stdout.strip(), done.stderr


def effects(project: Project) -> list[dict[str, Any]]:
    """What the agents of processes were asked, with what came of it, as the journals of the lead tell."""
    entries = [
        json.loads(line)
        for path in (project.folder / ".koi/runs").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return [entry for entry in entries if entry.get("intent") == "acp.ask" and entry["kind"] == "done"]


def test_a_member_works_under_the_rules(team: Project) -> None:
    """What the agent asks leave for is decided by the rules of the one who asks; what it does is in the journal."""
    printed, _ = run(team, "--allow", "run:koi *", "--allow", "run:touch *", "--record")

    assert "Made it." == printed
    assert (team.folder / "made").exists()
    (effect,) = effects(team)
    assert [{"title": "`touch made`", "kind": "execute", "status": "completed"}] == effect["result"]["tools"]


def test_what_rules_do_not_allow_is_not_done(team: Project) -> None:
    """Where nobody can be asked nothing is allowed; the agent is told so, and says what it has done without it."""
    printed, _ = run(team, "--allow", "run:koi *")

    assert not (team.folder / "made").exists()
    assert "Made it." == printed


def test_starting_an_agent_needs_leave(team: Project) -> None:
    """A command that is no agent, is not there, or that nobody allows, is a failure that says so."""
    printed, _ = run(team)
    assert "koi acp helper.koi" in printed

    for word, why in (("nothing-like-it", "cannot be started"), ("true", "has ended before its turn did")):
        team.write("main.koi", LEAD.replace("koi/acp/helper.koi/--answers/helper.json", word))
        assert why in run(team, "--allow", f"run:{word}")[0]


@pytest.fixture
def other(team: Project) -> Project:
    """A project with an agent of another make."""
    bin = team.folder / "bin"
    bin.mkdir()
    agent = bin / "other"
    agent.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name('agent.py')}\n")
    agent.chmod(0o755)
    return team


def ask(project: Project, message: str, *words: str, more: str = "") -> str:
    """What the agent says to a message; it may be started."""
    text = LEAD.replace("koi/acp/helper.koi/--answers/helper.json", "other").replace("make it", message)
    project.write("main.koi", text.replace("can execute", f"can execute{more}"))
    printed, errors = run(project, "--allow", "run:other", *words)
    assert "Traceback" not in errors
    return printed


def test_what_an_agent_asks_leave_for(other: Project) -> None:
    """Files, pages and all else go to the policy, are allowed once and never for always; the rest is not there."""
    file = other.write("src/x.txt", "a\n")
    other.write(".env", "KEY=1\n")
    inside, outside = f"edit {file}", f"edit {other.folder.parent / 'y.txt'}"

    assert "oreject_once" == ask(other, inside)
    assert "oallow_once" == ask(other, inside, "--allow", "write:src/**")
    assert "oreject_once" == ask(other, outside, "--allow", "write:**")
    assert "oreject_once" == ask(other, "fetch https://example.org/x")
    assert "oallow_once" == ask(other, "fetch https://example.org/x", "--allow", "web:example.org")
    assert "oreject_once" == ask(other, "free", "--allow", "write:**", "--allow", "run:*")
    everything = ("--allow", "read:**", "--allow", "write:**", "--allow", "run:*", "--allow", "shell")
    assert "oallow_once" == ask(other, f"read {file}", *everything)
    assert "oallow_once" == ask(other, "run ls src", *everything)
    for closed in ("read .env", "edit koi.toml", "edit main.koi", "run cat .env", "strange"):
        assert "oreject_once" == ask(other, closed, *everything), closed
    assert "-32601" == ask(other, "odd")
    assert "b\n" == file.read_text()
    assert not (other.folder.parent / "y.txt").exists()

    undone = other.koi("undo", "last", "--dry-run")
    assert "nothing" in undone.stdout + undone.stderr


def test_what_an_agent_changes_is_put_back(other: Project) -> None:
    """The files that it has changed are those of the run."""
    file = other.write("src/x.txt", "a\n")
    ask(other, f"edit {file}", "--allow", "write:src/**", "--record")
    replayed = other.koi("replay", "last")
    assert (0, "oallow_once\n") == (replayed.returncode, replayed.stdout[:12]), replayed.stderr
    other.koi("undo", "--yes")

    assert "a\n" == file.read_text()


def test_the_cost_of_an_agent_counts(other: Project) -> None:
    """What the agent says that it has cost is what the run has cost."""
    ask(other, "cost", "--record")

    assert "$0.25" in other.koi("runs", "show", "last").stdout
    assert 0 == other.koi("replay", "last").returncode


def test_an_agent_that_nobody_waits_for(other: Project) -> None:
    """A turn that takes too long is cancelled, and its process ends."""
    printed = ask(other, "wait", "--max-time", "2s")

    assert "done" != printed
    assert "session/cancel" == (other.folder / "told").read_text()
