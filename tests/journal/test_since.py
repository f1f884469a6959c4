"""`koi run FILE --since RUN`: only what a change can reach is asked anew, as a provider counts it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.first.machine import KEY, Machine, Outcome
from tests.llm.server import Answer, Asked, ModelServer
from tests.projects import Project

MODEL = "gpt-4o-mini"
TOPIC = re.compile(r"Write about (\w+)")


@pytest.fixture
def machine(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A person with a key of OpenAI."""
    found = Machine(project, tmp_path, monkeypatch)
    found.set(OPENAI_API_KEY=KEY, KOI_MODEL="")
    return found


PRINT = "console.log(found.map(each => each.text).join())"


def program(topics: Sequence[str], then: str = PRINT, **changed: str) -> str:
    """A program that has members of a team write at the same time, each about a topic, or as is said of it."""
    texts = [changed.get(topic, f"Write about {topic}.") for topic in topics]
    agents = "".join(
        f'agent W{n} : R {{ on write{n}(args: Json) {{ playbook """{text}""" }} }}\n' for n, text in enumerate(texts)
    )
    sends = ", ".join(f'(async () => await send peers.event("write{n}").any()({{}}))()' for n in range(len(topics)))
    return f"""
role R {{ can execute, can delegate }}
team T {{ {", ".join(f"w{n}: W{n}" for n in range(len(topics)))} }}
{agents}
agent Lead : R {{
  uses team T
  on start(args: Json) {{
    const found = await Promise.all([{sends}])
    {then}
  }}
}}
run Lead.start({{}})
"""


def answer(asked: Asked) -> Answer:
    """What the model writes: the topic in large letters, where the playbook that is asked for last names one."""
    found = TOPIC.findall(json.dumps(asked.body["messages"]))
    action = {"intent": "return", "data": {"text": found[-1].upper() if found else "?"}}
    return Answer(pieces=(json.dumps(action),), usage=(1000, 100, 0))


class Edits:
    """A program that is changed and run again while a provider counts."""

    def __init__(self, machine: Machine, server: ModelServer) -> None:
        self.machine, self.server = machine, server
        machine.use(server)

    async def __call__(self, text: str, *words: str) -> tuple[int, Outcome]:
        """How many requests a run of a program makes, and its outcome."""
        self.machine.project.write("main.koi", text)
        before = len(self.server.requests)
        done = await self.machine.koi("run", "main.koi", *words)
        return len(self.server.requests) - before, done


def test_only_the_edited_playbook_is_asked(machine: Machine) -> None:
    """Of three that write at the same time one was edited; unchanged asks nobody; each time all output is there."""

    async def run() -> list[tuple[int, Outcome]]:
        async with ModelServer(answer, [MODEL]) as server:
            edits = Edits(machine, server)
            texts = [program(("ants", "bees", "cats")), program(("ants", "bees", "cats"), bees="Write about wasps.")]
            first = await edits(texts[0], "-m", f"openai/{MODEL}")
            return [first, *[await edits(text, "--since", "last") for text in (*texts, texts[1])]]

    first, same, edited, again = asyncio.run(run())

    assert [3, 0, 1, 0] == [asked for asked, _ in (first, same, edited, again)], edited[1].err
    assert ["ANTS,BEES,CATS\n", "ANTS,WASPS,CATS\n"] == [same[1].out, again[1].out]
    assert [first[1].out, edited[1].out] == [same[1].out, again[1].out]
    assert f"; as before: -m openai/{MODEL}\n" in edited[1].err
    assert (
        "2 model answers reused (2,200 tokens, $0.0004), 1 requested again (1,100 tokens, $0.0002)\n" in edited[1].err
    )
    assert "3 model answers reused (3,300 tokens, $0.0006), 0 requested again (0 tokens, $0.0000)\n" in again[1].err


def test_of_forty_one_is_asked(machine: Machine) -> None:
    """However many work at the same time."""
    topics = [f"topic{n}" for n in range(40)]

    async def run() -> list[tuple[int, Outcome]]:
        async with ModelServer(answer, [MODEL]) as server:
            edits = Edits(machine, server)
            first = await edits(program(topics), "-m", f"openai/{MODEL}")
            return [first, await edits(program(topics, topic17="Write about wasps."), "--since", "last")]

    (all_asked, _), (asked, edited) = asyncio.run(run())

    assert (40, 1) == (all_asked, asked), edited.err
    assert edited.out.strip() == ",".join("WASPS" if n == 17 else f"TOPIC{n}" for n in range(40))


def test_what_follows_a_change_in_code_is_asked(machine: Machine) -> None:
    """A run that fails keeps what it has got, and what its parent knew; another model is asked everything."""
    topics = ("ants", "bees")
    fails = 'throw new Error("not yet")'
    follows = """const last = await send peers.event("write1").any()({{ after: "{}" }}); console.log(last.text)"""
    changes = (
        ("-m", f"openai/{MODEL}"), program(topics, follows.format("a")), 3,
        ("--since", "last"), program(topics, follows.format("b")), 1,
        ("--since", "last"), program(topics, fails, ants="Write about wasps."), 1,
        ("--since", "last"), program(topics, follows.format("b"), ants="Write about wasps."), 1,
        ("--since", "last", "-m", "openai/gpt-4o"), program(topics, follows.format("b"), ants="Write about wasps."), 3,
    )  # fmt: skip

    async def run() -> list[int]:
        async with ModelServer(answer, [MODEL, "gpt-4o"]) as server:
            edits = Edits(machine, server)
            return [(await edits(text, *words))[0] for words, text in zip(changes[::3], changes[1::3], strict=True)]

    assert list(changes[2::3]) == asyncio.run(run())


def test_runs_that_are_none_of_the_program_are_refused(machine: Machine) -> None:
    """One message, and nobody is asked; a program that was moved is known."""
    project = machine.project
    project.write(
        "a.koi", 'role R { can execute }\nagent A : R { on go(x: Json) { console.log("a") } }\nrun A.go({})\n'
    )
    none = machine.now("run", "a.koi", "--since", "last")
    machine.now("run", "a.koi")
    project.write("b.koi", (project.folder / "a.koi").read_text().replace('"a"', '"b"'))
    run = next((project.folder / ".koi" / "runs").glob("*.jsonl")).stem
    other = machine.now("run", "b.koi", "--since", run)
    (project.folder / "sub").mkdir()
    (project.folder / "a.koi").rename(project.folder / "sub" / "a.koi")
    moved = machine.now("run", "sub/a.koi", "--since", "last")

    assert (1, "error: there is no earlier run of `a.koi` in this folder") == (none.code, none.err.splitlines()[0])
    assert (2, f"error: `{run}` is a run of another program, `a.koi`") == (other.code, other.err.splitlines()[0])
    assert (0, "a\n") == (moved.code, moved.out), moved.err
