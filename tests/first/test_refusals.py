"""What a provider refuses of requests, as a person at a terminal meets it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.first.machine import GREETING, KEY, Machine
from tests.llm.refusals import REFUSALS, error
from tests.llm.server import Answer, ModelServer
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Ann : Worker {
      llm default = { model: "openai/gpt-4o", max_tokens: 900, temperature: 0.2 }
      on hello(args: Json) { playbook \"\"\"Greet.\"\"\" }
    }
    agent Bo : Worker {
      llm default = { model: "openai/gpt-4o", temperature: 0.5 }
      on hello(args: Json) { playbook \"\"\"Greet.\"\"\" }
    }
    run Ann.hello({})
    run Bo.hello({})
    """


@pytest.fixture
def machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a program and a key of OpenAI."""
    machine = Machine(project, project.folder.parent, monkeypatch)
    project.write("a.koi", PROGRAM)
    machine.set(OPENAI_API_KEY=KEY)
    return machine


def ended(machine: Machine, *answers: Answer | str) -> tuple[Any, Any, list[Any]]:
    """How a run went, and its replay, and which temperatures were asked for."""

    async def use() -> tuple[Any, Any, list[Any]]:
        async with ModelServer(answers, models=["gpt-4o"]) as server:
            machine.use(server)
            done = await asyncio.to_thread(machine.project.koi, "run", "a.koi")
            again = await asyncio.to_thread(machine.project.koi, "replay", "last")
            return done, again, [request.body.get("temperature") for request in server.requests]

    return asyncio.run(use())


def test_a_run_finds_out_once_what_a_model_does_not_take(machine: Machine) -> None:
    """Agents with options of their own ask the same model; the replay asks nobody."""
    refused = Answer(status=400, error=REFUSALS["openai temperature"][0])

    done, again, asked = ended(machine, refused, GREETING)

    assert (0, [0.2, None, None]) == (done.returncode, asked)
    assert 1 == done.stderr.count("`gpt-4o` takes no `temperature`, so it is left out")
    assert (0, done.stdout) == (again.returncode, again.stdout)


def test_a_run_ends_with_the_part_that_is_refused(machine: Machine) -> None:
    """One sentence, without what would steer the terminal, and one thing to do."""
    said = "max_tokens is too large: 900 \x1b[31m\x07 <html>"

    done, again, asked = ended(machine, Answer(status=400, error=error(said, param="max_tokens")))

    assert (69, [0.2]) == (done.returncode, asked)
    assert "`openai` rejects `max_tokens`: max_tokens is too large: 900" in done.stderr
    assert "Set another `max_tokens` in the `llm` block of the agent." in done.stderr
    assert [mark for mark in ("\x1b", "\x07", "Traceback") if mark in done.stderr] == []
    assert "nothing is different" in again.stderr
