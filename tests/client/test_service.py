"""The client and `koi ask` against a service that is a process of its own, also one that is killed in the middle."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from koi_lang.client import AsyncClient, Client, RefusedError, RemoteCallError, RunMessage, SignInError
from tests.client.stand_in import types
from tests.service.conftest import service, start_service
from tests.service.serving_process import ServiceProcess

__all__ = ["service", "start_service"]

DESK = """
role R { can execute }
agent Writer : R {
  on write(args: { n: number }) { console.log(`about ${args.n}`); return args.n * 2 }
  on sign(args: Json) {
    console.log("begun")
    const first = await callAction("prompt_user", { question: "Who signs?" })
    console.log("first")
    const second = await callAction("prompt_user", { question: "And who else?" })
    return [args.n, first.answer, second.answer]
  }
  on fail(args: Json) { throw new Error("no such city") }
}
"""
START = {"topic": "tea"}


def events_of(messages: list[RunMessage]) -> list[int]:
    """The numbers of the entries among messages."""
    return [message.number for message in messages if message.number is not None]


def test_a_call_of_a_program(service: ServiceProcess) -> None:
    """A run is begun, its question answered, and its result comes; its costs are told."""
    with Client(service.url, service.token) as client:
        result = client.ask("Editor.start", START, ask=lambda question, options: "yes")
        run = next(iter(client.runs(limit=1)))
        costs = {by: client.costs(by)["groups"] for by in ("day", "model", "user", "program", "agent")}

        assert result["published"] is True
        assert (4, 1) == (run["requests"], len(costs["day"]))
        names = [[group[by] for group in costs[by]] for by in ("model", "user", "program")]
        assert [["scripted"], ["admin"], ["desk.koi"]] == names
        assert {row["requests"] for by in ("day", "model") for row in costs[by]} == {
            sum(row["requests"] for row in costs["agent"])
        }
        with pytest.raises(RefusedError, match="`by` is no such word"):
            client.costs("moon")


def test_errors_of_a_service(service: ServiceProcess) -> None:
    """What a service refuses has its code, its sentence and its help."""
    with Client(service.url, "wrong") as stranger, pytest.raises(SignInError) as refused:
        stranger.status()
    with Client(service.url, service.token) as client:
        for handler, payload, code in (
            ("Editor.strat", {}, "unknown_handler"),
            ("Editor.start", {"topic": 3}, "invalid_request"),
        ):
            with pytest.raises(RefusedError) as caught:
                client.start(handler, payload)
            assert (code, True) == (caught.value.code, bool(caught.value.help))
        with pytest.raises(RefusedError, match="there is no run `0000`"):
            list(client.run("0000"))
    assert ("no_token", 401) == (refused.value.code, refused.value.status)


def test_a_service_that_is_killed_in_the_middle(start_service: Callable[..., ServiceProcess]) -> None:
    """Whoever follows a run goes on after SIGKILL and a restart: each message once, each question, and the result."""
    service = start_service(desk=DESK)
    with Client(service.url, service.token) as client:
        run = client.start("Writer.sign", {"n": 7})
        seen = list[RunMessage]()
        names = {"Who signs?": "Ann", "And who else?": "Bob"}
        for message in run:
            seen.append(message)
            if message.type == "question":
                run.answer(message.request, names[message.data["question"]])
            if types([message]) == ["printed"] and message.data["event"]["message"] == "first":
                service.end(signal.SIGKILL)
                restart = threading.Thread(target=service.start)
                restart.start()
        restart.join()

        assert [7, "Ann", "Bob"] == run.result()
        assert [*range(1, len(events_of(seen)) + 1)] == events_of(seen)
        assert 2 == types(seen).count("printed")


def test_forty_clients_and_a_restart(start_service: Callable[..., ServiceProcess]) -> None:
    """Forty calls at once, all with questions, get their own answers, although the service is killed meanwhile."""
    service = start_service(desk=DESK)

    async def call(client: AsyncClient, n: int, waiting: list[int]) -> Any:
        run = await client.start("Writer.sign", {"n": n})
        async for message in run:
            if message.type == "question":
                if message.data["question"].startswith("Who") and n not in waiting:
                    waiting.append(n)
                    if len(waiting) == 40:
                        await asyncio.to_thread(restart)
                await run.answer(message.request, f"{message.data['question'][0]}{n}")
        return await run.result()

    def restart() -> None:
        service.end(signal.SIGKILL)
        service.start()

    async def call_all() -> list[Any]:
        waiting: list[int] = []
        async with AsyncClient(service.url, service.token) as client, asyncio.timeout(60):
            return await asyncio.gather(*(call(client, n, waiting) for n in range(40)))

    assert [[n, f"W{n}", f"A{n}"] for n in range(40)] == asyncio.run(call_all())


def test_a_failure_of_a_program(start_service: Callable[..., ServiceProcess]) -> None:
    """It is an error here, and `koi ask` ends as `koi run` does."""
    service = start_service(desk=DESK)
    with Client(service.url, service.token) as client, pytest.raises(RemoteCallError, match="no such city"):
        client.ask("Writer.fail", {})
    failed = ask(service, "Writer.fail")
    good = ask(service, "Writer.write", '{"n": 4}')
    quiet = ask(service, "Writer.write", '{"n": 4}', "--json")
    answered = ask(service, "Writer.sign", "--json", stdin="Ann\nBob\n")

    assert (1, "", "error: no such city\n") == (failed.returncode, failed.stdout, failed.stderr)
    assert (0, "about 4\n8\n", "") == (good.returncode, good.stdout, good.stderr)
    assert (8, "about 4\n") == (json.loads(quiet.stdout), quiet.stderr)
    assert [None, "Ann", "Bob"] == json.loads(answered.stdout)


def ask(service: ServiceProcess, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The outcome of `koi ask`."""
    command = [sys.executable, "-m", "koi_lang", "ask", service.url, *words]
    environment = {"KOI_SERVE_TOKEN": service.token, "PATH": "/usr/bin:/bin", "HOME": str(service.folder)}
    return subprocess.run(command, capture_output=True, text=True, input=stdin, env=environment, timeout=60)
