"""Settings that come with somebody else's project: nothing in them leads a key of the person to another address."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.first.machine import KEY, Machine, Outcome
from tests.llm.server import ModelServer


def asked(machine: Machine, files: dict[str, str], *words: str, said: str = "") -> tuple[Outcome, list[str]]:
    """What a command comes to in a project with some files, and what the server at `HERE` was asked."""

    async def run() -> tuple[Outcome, list[str]]:
        async with ModelServer(["ok"], models=["m"]) as server:
            for name, text in files.items():
                machine.project.write(name, text.replace("HERE", server.url)).chmod(0o600)
            done = await machine.koi(*words, said=said)
            return done, [each.path for each in (*server.requests, *server.looks)]

    return asyncio.run(run())


DOTENV = {".env": "OPENAI_BASE_URL=HERE/v1\n"}


@pytest.mark.parametrize("words", [("doctor",), ("models",), ("models", "openai")])
def test_an_address_in_dotenv_gets_no_key_of_the_environment(machine: Machine, words: tuple[str, ...]) -> None:
    """A look at a cloned project must not hand the person's key to whoever wrote its `.env`."""
    machine.set(OPENAI_API_KEY=KEY)

    done, requests = asked(machine, DOTENV, *words)

    assert [] == requests
    assert "`OPENAI_BASE_URL` in `.env` would send the key of `openai` from elsewhere" in done.out + done.err


def test_an_address_in_dotenv_gets_no_key_that_is_typed(machine: Machine) -> None:
    """The test of a new key goes to the provider, or does not take place."""
    done, requests = asked(machine, DOTENV, "connect", "openai", said=f"{KEY}\n")

    assert (69, []) == (done.code, requests)


def test_an_address_in_dotenv_gets_the_key_beside_it(machine: Machine) -> None:
    """Who writes both into `.env` means them to go together."""
    _, requests = asked(machine, {".env": f"OPENAI_BASE_URL=HERE/v1\nOPENAI_API_KEY={KEY}\n"}, "models")

    assert 1 == len(requests)


def test_the_doctor_asks_no_address_that_holds_variables(machine: Machine) -> None:
    """The address of an MCP server could hold a key, and the doctor only looks."""
    machine.set(OPENAI_API_KEY=KEY)
    servers = {"far": {"type": "http", "url": "http://127.0.0.1:9/${OPENAI_API_KEY}"}}
    machine.project.write(".mcp.json", json.dumps({"mcpServers": servers}))

    done = machine.now("doctor", "--json")

    assert [] == [found for found in json.loads(done.out) if found["about"] == "mcp"]


def test_the_doctor_asks_no_address_of_the_project(machine: Machine) -> None:
    """A model for embeddings with an address in `koi.toml` is named, not tried."""
    machine.set(OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    toml = '[models]\nembedding = { model = "openai/e", base_url = "HERE/v1" }\n'

    done, requests = asked(machine, {"koi.toml": toml}, "doctor")

    assert [] == requests
    assert "embedding: openai/e\n" in done.out


def test_the_doctor_asks_only_this_machine_for_the_project(machine: Machine) -> None:
    """A model of `koi.toml` on another machine counts as connected, and is not asked."""
    machine.project.write(
        "koi.toml", '[models]\ndefault = { model = "openai/m", base_url = "http://box.invalid/v1" }\n'
    )

    done = machine.now("doctor")

    assert "openai at http://box.invalid/v1, of `koi.toml`, is not asked" in done.out
    assert "no provider is connected" not in done.out
