"""The errors people meet first, each as one message that says what to do; the texts are golden files."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.first.machine import ANYBODY, GREETER, KEY, Machine
from tests.llm.server import Answer, ModelServer

MESSAGES = Path(__file__).parent / "messages"
PROSE = "Sure! Here is a friendly greeting for Ada."
UNENDING = '{"batch":[{"intent":"print","message":"Hello"}]}'
EMPTY = '{"batch":[]}'


@dataclass(frozen=True, slots=True)
class Case:
    """One way to begin that goes wrong; `answers` are those of the provider, none for no provider at all."""

    words: tuple[str, ...] = ("run", "a.koi")
    code: int = 1
    answers: tuple[Answer | str, ...] = ()
    files: dict[str, str] = field(default_factory=lambda: {"a.koi": GREETER})
    environment: dict[str, str] = field(default_factory=lambda: {"OPENAI_API_KEY": KEY})
    models: tuple[str, ...] = ()
    said: str = ""


def refused(status: int, code: str = "", message: str = "no") -> tuple[Answer]:
    """A provider that says no."""
    about: dict[str, Any] = {"message": message, "code": code}
    return (Answer(status=status, error={"error": about}),)


MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-5.4-mini")
NOWHERE = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
NO_NAME = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://no-such-host.invalid/v1"}
CASES = {
    "no_key": Case(code=2, environment={}),
    "no_key_for_m": Case(("run", "a.koi", "-m", "groq/x"), 2, environment={}),
    "wrong_key": Case(code=69, answers=refused(401, "invalid_api_key", f"Incorrect API key provided: {KEY}")),
    "nobody_listens": Case(("models", "openai"), 69, environment=NOWHERE),
    "no_network": Case(("models", "openai"), 69, environment=NO_NAME),
    "unknown_model": Case(code=69, answers=refused(404, "model_not_found")),
    "mistyped_model": Case(("run", "a.koi", "-m", "openai/gtp-4o-mini"), 2, answers=("never",), models=MODELS),
    "mistyped_provider": Case(("run", "a.koi", "-m", "opnai/gpt-4o"), 2, answers=("never",), models=MODELS),
    "quota_used_up": Case(code=69, answers=refused(429, "insufficient_quota")),
    "credit_used_up": Case(code=69, answers=refused(402)),
    "prose": Case(code=70, answers=(PROSE,)),
    "unending": Case(code=70, answers=(UNENDING,)),
    "nothing_done": Case(code=70, answers=(EMPTY,)),
    "no_file": Case(("run", "b.koi"), 2),
    "no_ending": Case(("run", "a"), 2),
    "other_ending": Case(("run", "a.txt"), 2, files={"a.txt": GREETER}),
    "second_ending": Case(("run", "a.koi"), 2, files={"a.koi.txt": GREETER}),
    "without_run": Case(("a.koi",), 2),
    "other_ending_without_run": Case(("a.txt",), 2, files={"a.txt": GREETER}),
    "nothing_to_run": Case(code=2, files={"a.koi": GREETER.partition("run Greeter")[0]}),
    "folder": Case(("run", "."), 2),
    "no_terminal": Case(("run", "a.koi", "-m", "?"), 2, answers=("never",), models=MODELS),
    "mistyped_role": Case(code=2, files={"a.koi": ANYBODY, "koi.toml": '[models]\ndefalt = "openai/gpt-4o"\n'}),
    "mistyped_in_toml": Case(code=2, files={"a.koi": ANYBODY, "koi.toml": '[models]\ndefault = "antropic/haiku"\n'}),
    "mistyped_section": Case(code=2, files={"a.koi": ANYBODY, "koi.toml": '[modles]\ndefault = "openai/gpt-4o"\n'}),
    "connect_nobody": Case(("connect",), 2, environment={}),
    "connect_mistyped": Case(("connect", "antropic"), 2, environment={}),
    "connect_nothing": Case(("connect", "openai"), 2, environment={}),
    "connect_wrong_key": Case(("connect", "openai"), 69, refused(401, "", KEY), said=f"{KEY}\n", environment={}),
    "connect_no_key": Case(("connect", "openai"), 2, said="my key is sk-1\n", environment={}),
    "connect_no_ollama": Case(("connect", "ollama"), 69, environment={}),
    "models_of_nobody": Case(("models",), 2, environment={}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_goes_wrong_first_is_said_in_one_message(machine: Machine, name: str, accept: bool) -> None:
    """The message is the expected one, the exit code too; nothing is on stdout, no key and no traceback anywhere."""
    case, golden = CASES[name], MESSAGES / f"{name}.txt"
    code, out, err = asyncio.run(outcome(machine, case))

    if accept:
        golden.write_text(err)
    assert (case.code, golden.read_text()) == (code, err)
    assert KEY not in out + err
    assert "Traceback" not in err
    assert "help: " in err or "Did you mean" in err


async def outcome(machine: Machine, case: Case) -> tuple[int, str, str]:
    """Exit code and output; ports and ids of runs are not always the same."""
    for name, text in case.files.items():
        machine.project.write(name, text)
    machine.set(**case.environment)
    async with ModelServer(case.answers or (Answer(),), models=case.models) as server:
        if case.answers:
            machine.use(server)
        done = await machine.koi(*case.words, said=case.said)
    if "never" in case.answers:
        assert server.requests == []
    told = re.sub(r"`koi resume [0-9a-f]{12}`", "`koi resume ID`", done.err)
    return done.code, done.out, re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", told)


def test_the_messages_are_those_of_the_cases() -> None:
    """There is no golden file without its case."""
    assert {path.stem for path in MESSAGES.glob("*.txt")} == set(CASES)
