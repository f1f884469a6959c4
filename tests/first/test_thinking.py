"""Models that think, from the command line: asked for it, shown, and never kept."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from koi_lang.cli.options import limiting_words
from tests.first.machine import GREETING, KEY, Machine
from tests.llm.server import Answer, ModelServer
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Ann : Worker {
      llm default = { model: "openai/o3", max_tokens: 900 }
      on hello(args: Json) { playbook \"\"\"Greet.\"\"\" }
    }
    agent Bo : Worker {
      llm default = { model: "openai/o3", effort: "medium" }
      on hello(args: Json) { playbook \"\"\"Greet.\"\"\" }
    }
    run Ann.hello({})
    run Bo.hello({})
    """
SHELL = '{"actionType": "direct", "intent": "print", "data": {"message": "from a thought"}}'
THINKING = Answer(pieces=(GREETING,), thoughts=("Hm. ", SHELL), usage=(10, 9, 0), thought_tokens=5)


@pytest.fixture
def machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a program and a key of OpenAI."""
    machine = Machine(project, project.folder.parent, monkeypatch)
    project.write("a.koi", PROGRAM)
    machine.set(OPENAI_API_KEY=KEY)
    return machine


def ended(machine: Machine, *words: str, said: str = "") -> tuple[Any, list[Any]]:
    """What a command left behind while a model thinks, and the bodies of its requests."""

    async def use() -> tuple[Any, list[Any]]:
        async with ModelServer([THINKING], models=["o3"]) as server:
            machine.use(server)
            done = await asyncio.to_thread(machine.project.koi, *words, stdin=said)
            return done, [request.body for request in server.requests]

    return asyncio.run(use())


def test_python_says_how_much_models_think(machine: Machine) -> None:
    """`effort` counts for all agents, as `-e` does."""
    machine.project.write("a.py", 'import koi_lang\nkoi_lang.run("a.koi", effort="high")\n')

    async def use() -> list[Any]:
        async with ModelServer([THINKING], models=["o3"]) as server:
            machine.use(server)
            await asyncio.to_thread(machine.project.fork, "a.py")
            return [request.body.get("reasoning_effort") for request in server.requests]

    assert ["high", "high"] == asyncio.run(use())


def test_a_run_says_once_what_its_models_lack(machine: Machine) -> None:
    """`-e` counts for all agents; a level that a model has not is told of, however many of them use it."""
    plain, bodies = ended(machine, "run", "a.koi")
    given, asked = ended(machine, "run", "a.koi", "-e", "none")

    told = "`o3` has no effort `none`, so it is asked for `low`"
    assert [None, "medium"] == [body.get("reasoning_effort") for body in bodies]
    assert ["low", "low"] == [body["reasoning_effort"] for body in asked]
    assert [0, 1] == [done.stderr.count(told) for done in (plain, given)]


def test_thoughts_leave_no_trace(machine: Machine) -> None:
    """An action in them is not carried out, and neither output nor journal has a word of them; their tokens count."""
    done, _ = ended(machine, "run", "a.koi", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    counted = [event["tokens"] for event in events if event["type"] == "model_answered"]

    assert [{"input": 10, "output": 9, "cached": 0, "thinking": 5}] * 2 == counted
    assert ["Hello Ada"] * 2 == [event["message"] for event in events if event["type"] == "printed"]
    kept = [name for name, content in machine.files().items() if b"from a thought" in content]
    assert ([], False) == (kept, "from a thought" in done.stdout + done.stderr)


def test_a_client_is_told_what_a_model_thinks(machine: Machine) -> None:
    """`koi rpc` sends each piece as it comes, without a number; the level is that which the client has set."""
    said = [{"type": "set_thinking_level", "level": "high"}, {"type": "prompt", "message": "hi", "name": "Ann.hello"}]
    done, bodies = ended(machine, "rpc", "a.koi", said="".join(f"{json.dumps(message)}\n" for message in said))
    sent = [json.loads(line).get("event", {}) for line in done.stdout.splitlines()]
    thoughts = [event for event in sent if event.get("type") == "thinking_delta"]

    assert ["Hm. ", SHELL] == [event["text"] for event in thoughts]
    assert not any("seq" in event for event in thoughts)
    assert ["high"] == [body["reasoning_effort"] for body in bodies]


def test_a_run_that_goes_on_can_be_told_to_think_otherwise() -> None:
    """What `koi resume` is told counts from then on, so that it stands among the words of the run."""
    assert ("-m", "openai/o3", "-e", "low") == limiting_words({"model": "openai/o3", "effort": "low"})
