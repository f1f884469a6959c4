"""Keys stay where they belong: after everything that can go wrong, no byte that was written or shown has one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.first.machine import GREETER, GREETING, KEY, Machine, Outcome
from tests.first.test_errors import refused
from tests.first.test_keys import NAME, keyring
from tests.llm.server import Answer, ModelServer

__all__ = ["keyring"]

ECHO = json.dumps({"batch": [{"intent": "update_state", "updates": {"said": KEY}}, {"intent": "return", "data": {}}]})
BROKEN = Answer(pieces=("{",), raw=f"data: {{broken {KEY}\n\n")
THROWS = """
    role Worker { can execute }
    agent Main : Worker { on start(args: Json) { throw new Error(`no luck with ${process.env.OPENAI_API_KEY}`) } }
    run Main.start({})
    """
CRASHES = """
    import crash from "./crash.py"
    role Worker { can execute }
    agent Main : Worker { on start(args: Json) { crash.now(process.env.OPENAI_API_KEY) } }
    run Main.start({})
    """
CRASH = "def now(key):\n    raise OSError(f'cannot use {key}')\n"
ANSWERS: dict[str, tuple[Answer | str, ...]] = {
    "good": (GREETING,),
    "echoed": (ECHO,),
    "wrong": refused(401, "invalid_api_key", f"Incorrect API key provided: {KEY}"),
    "rejected": refused(400, "", f"bad request by {KEY}"),
    "broken": (BROKEN,),
    "page": (Answer(status=400, page=f"<html>{KEY}</html>"),),
}
WAYS = (("--record", "--json"), ("--record", "--debug"), ("--verbose",), ())


def in_environment(machine: Machine) -> None:
    """The key is a variable."""
    machine.set(**{NAME: KEY})


def in_dotenv(machine: Machine) -> None:
    """The key is in `.env`."""
    machine.project.write(".env", f"{NAME}={KEY}\n")


def kept(machine: Machine) -> None:
    """The key was given to koi, which puts it into the keyring or its file."""
    assert machine.now("connect", "openai", "--no-test", said=KEY).code == 0


def assert_unseen(machine: Machine, done: Outcome) -> None:
    """Nothing that a command showed or wrote has the key, but for the places that are made for keys."""
    own = {".env", "keys.json", "keyring.json"}
    having = [name for name, data in machine.files().items() if KEY.encode() in data and Path(name).name not in own]

    assert having == []
    assert KEY not in done.out + done.err


@pytest.mark.sampled(11)
@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("put", [in_environment, in_dotenv, kept])
def test_a_run_shows_and_writes_no_key(
    machine: Machine, put: Callable[[Machine], None], words: tuple[str, ...], answers: str
) -> None:
    """Whatever the provider answers, and however much is shown of it."""
    machine.project.write("a.koi", GREETER)
    put(machine)

    async def run() -> Outcome:
        async with ModelServer(ANSWERS[answers]) as server:
            machine.use(server)
            return await machine.koi("run", "a.koi", *words)

    assert_unseen(machine, asyncio.run(run()))


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("text", [THROWS, CRASHES], ids=["throws", "crashes"])
def test_a_failing_program_shows_no_key(machine: Machine, text: str, words: tuple[str, ...]) -> None:
    """An error whose text has the key is shown without it, as message, event and traceback."""
    machine.project.write("a.koi", text)
    machine.project.write("crash.py", CRASH)
    in_environment(machine)

    done = machine.now("run", "a.koi", *words)

    assert done.code == 1
    assert_unseen(machine, done)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("put", [in_environment, in_dotenv, kept])
@pytest.mark.parametrize(
    "words", [("models",), ("models", "--json"), ("doctor",), ("doctor", "--json"), ("connect", "status")]
)
def test_other_commands_show_no_key(machine: Machine, put: Callable[[Machine], None], words: tuple[str, ...]) -> None:
    """Lists, findings and states have at most its end."""
    put(machine)

    async def run() -> Outcome:
        async with ModelServer(models=["gpt-4o"]) as server:
            machine.use(server)
            return await machine.koi(*words)

    done = asyncio.run(run())

    assert done.code == 0
    assert_unseen(machine, done)


def test_a_key_of_the_keyring_is_hidden_too(machine: Machine, keyring: Path) -> None:
    """A key that only the keyring knows does not get into the journal that an echoing model fills."""
    machine.project.write("a.koi", GREETER)
    kept(machine)

    async def run() -> Outcome:
        async with ModelServer([ECHO]) as server:
            machine.use(server)
            return await machine.koi("run", "a.koi", "--record", "--debug")

    done = asyncio.run(run())

    assert done.code == 0
    assert KEY in keyring.read_text()
    assert_unseen(machine, done)


def test_a_key_from_a_named_file_is_hidden_too(machine: Machine) -> None:
    """`--keys FILE` counts first and is as secret as the others."""
    machine.project.write("a.koi", GREETER)
    machine.project.write("keys.json", f"{NAME}={KEY}\n")
    machine.set(**{NAME: "sk-the-wrong-one-012345"})

    async def run() -> tuple[Outcome, str]:
        async with ModelServer([ECHO]) as server:
            machine.use(server)
            done = await machine.koi("run", "a.koi", "--keys", "keys.json", "--record", "--json")
            return done, server.requests[0].headers["authorization"]

    done, sent = asyncio.run(run())

    assert sent == f"Bearer {KEY}"
    assert_unseen(machine, done)
