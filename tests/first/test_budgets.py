"""Budgets, as somebody at a command line meets them: what is sent, what is billed, and how a run ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.first.machine import GREETER, GREETING, KEY, Machine, Outcome
from tests.llm.server import Answer, ModelServer

OVER = "the run has used 13800 tokens, more than its budget of 9000, because a model took more than was to be expected"
LYING = Answer(pieces=(GREETING,), usage=(600, 13_200, 0))
IN_VAIN = Answer(calls_tool=True, usage=(50_000, 300, 0))


def commands(
    machine: Machine, answers: Sequence[Answer], *lines: Sequence[str], program: str = GREETER
) -> tuple[list[Outcome], ModelServer]:
    """What some commands come to while a server answers for OpenAI."""

    async def run() -> tuple[list[Outcome], ModelServer]:
        machine.set(OPENAI_API_KEY=KEY)
        async with ModelServer(answers) as server:
            machine.use(server)
            return [await machine.koi(*words) for words in lines], server

    machine.project.write("a.koi", program)
    return asyncio.run(run())


def sent(server: ModelServer) -> list[Any]:
    """What requests say about the length of their answers."""
    return [asked.body.get("max_tokens") for asked in server.requests]


def test_a_run_that_ends_over_its_budget_fails(machine: Machine) -> None:
    """A provider that counts more than was reckoned with: what was done stays, the run says so and ends with 4."""
    (run, runs, again), server = commands(
        machine, [LYING], ["run", "--max-tokens", "9000", "a.koi"], ["runs", "list", "--json"], ["resume", "last"]
    )
    (listed,) = json.loads(runs.out)

    assert (4, "Hello Ada\n", True) == (run.code, run.out, OVER in run.err)
    assert "Raise `--max-tokens` if the run needs more." in run.err
    assert ("failed", 13_800, 1) == (listed["state"], listed["tokens"], listed["requests"])
    assert (4, True, 1) == (again.code, OVER in again.err, len(server.requests))


def test_a_call_that_ends_over_its_budget_fails_the_run(machine: Machine) -> None:
    """The budget of an agent counts as that of the run; a replay ends in the same way."""
    program = GREETER.replace("  on hello", "  budget { tokens: 9000 }\n on hello")
    (run,), _ = commands(machine, [LYING], ["run", "a.koi"], program=program)
    (journal,) = machine.folder.glob(".koi/runs/*.jsonl")
    replay = machine.now("replay", str(journal))

    assert (4, "Hello Ada\n") == (run.code, run.out)
    assert "`Greeter.hello` has used 13800 tokens, more than its budget of 9000" in run.err
    assert (0, True) == (replay.code, "nothing is different" in replay.err)


def test_what_is_thrown_away_is_on_the_bill(machine: Machine) -> None:
    """Two answers in vain are paid for as well: by what was told of them, or reckoned where they were cut before."""
    fine = Answer(pieces=(GREETING,), usage=(500, 18, 0))
    (run, runs), _ = commands(
        machine, [IN_VAIN, IN_VAIN, fine], ["run", "--verbose", "a.koi"], ["runs", "list", "--json"]
    )
    (listed,) = json.loads(runs.out)

    assert (0, "Hello Ada\n") == (run.code, run.out)
    assert f"3 requests, {listed['tokens']:,} tokens, $" in run.err
    assert (True, 3) == (listed["tokens"] > 518 + 2 * 400, listed["requests"]), "a request has some 500 tokens"


@pytest.mark.parametrize(
    ("block", "words", "expected"),
    [
        ("", [], None),
        ("", ["--max-usd", "5"], 8192),
        ("max_tokens: 100, ", ["--max-tokens", "3000"], 100),
        ("max_tokens: 20000, ", [], 20_000),
    ],
)
def test_what_is_sent(machine: Machine, block: str, words: list[str], expected: int | None) -> None:
    """Nothing where nothing is said; what is declared, and where a budget counts, what it reckons with."""
    program = GREETER.replace("provider:", f"{block}provider:")
    (run,), server = commands(machine, [Answer(pieces=(GREETING,))], ["run", *words, "a.koi"], program=program)

    assert (0, [expected]) == (run.code, sent(server))


def test_a_budget_smaller_than_what_is_declared(machine: Machine) -> None:
    """`max_tokens: 20000` does not lead past `--max-tokens 10000`."""
    program = GREETER.replace("provider:", "max_tokens: 20000, provider:")
    (run,), server = commands(
        machine, [Answer(pieces=(GREETING,))], ["run", "--max-tokens", "10000", "a.koi"], program=program
    )
    (limit,) = sent(server)

    assert (0, True) == (run.code, 8000 < limit < 9900)


@pytest.mark.parametrize("most", ['"many"', "0", "1.5", "true"])
def test_a_limit_that_is_none(machine: Machine, most: str) -> None:
    """`max_tokens` of an `llm` block is a whole number from 1."""
    program = GREETER.replace("provider:", f"max_tokens: {most}, provider:")
    (run,), server = commands(machine, [LYING], ["run", "a.koi"], program=program)

    assert ([], True) == (server.requests, "`max_tokens` cannot be " in run.err)
    assert run.code == 2
