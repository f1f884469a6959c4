"""The client and `koi ask` against a service that is a process of its own, also one that is killed in the middle."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from koi_lang.client import AsyncClient, Client, RefusedError, RemoteCallError, RunMessage, SignInError
from tests import forks
from tests.client.stand_in import types
from tests.projects import Project
from tests.service.conftest import service
from tests.service.serving_process import LIMIT_S, ServiceProcess

__all__ = ["service"]

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


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of the program above; who kills it starts it again."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "desk.koi").write_text(DESK)
    process = ServiceProcess(folder, ("desk.koi",))
    process.start()
    yield process
    process.end()


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
        with pytest.raises(RefusedError, match="`by` must be one of"):
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


def test_what_can_be_done_with_a_run(service: ServiceProcess) -> None:
    """It is begun once by its key, cancelled, takes and gives files, is described, found among others and removed."""
    with Client(service.url, service.token) as client:
        run, again = (client.start("Editor.start", START, key="once") for _ in range(2))
        next(message for message in run if message.type == "question")
        run.cancel()
        with pytest.raises(RemoteCallError) as cancelled:
            run.result()
        run.write_file("sub/a b.txt", b"\x00\xff")
        files, content = run.files(), run.read_file("sub/a b.txt")
        run.delete_file("sub/a b.txt")
        found = [each["id"] for each in client.runs(program="desk")]

        assert (run.id, "cancelled") == (again.id, cancelled.value.code)
        assert [("sub/a b.txt", 2)] == [(file["path"], file["bytes"]) for file in files]
        assert (b"\x00\xff", []) == (content, run.files())
        assert ("idle", 1) == (run.describe()["state"], found.count(run.id))
        run.delete()
        with pytest.raises(RefusedError, match=f"there is no run `{run.id}`"):
            run.describe()


def test_a_service_that_is_killed_in_the_middle(desk: ServiceProcess) -> None:
    """Whoever follows a run goes on after SIGKILL and a restart: each message once, each question, and the result."""
    with Client(desk.url, desk.token) as client:
        run = client.start("Writer.sign", {"n": 7})
        seen = list[RunMessage]()
        names = {"Who signs?": "Ann", "And who else?": "Bob"}
        for message in run:
            seen.append(message)
            if message.type == "question":
                run.answer(message.request, names[message.data["question"]])
            if types([message]) == ["printed"] and message.data["event"]["message"] == "first":
                desk.end(signal.SIGKILL)
                restart = threading.Thread(target=desk.start)
                restart.start()
        restart.join()

        assert [7, "Ann", "Bob"] == run.result()
        assert [*range(1, len(events_of(seen)) + 1)] == events_of(seen)
        assert 2 == types(seen).count("printed")


def test_forty_clients_and_a_restart(desk: ServiceProcess) -> None:
    """Forty calls at once, all with questions, get their own answers, although the service is killed meanwhile."""

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
        desk.end(signal.SIGKILL)
        desk.start()

    async def call_all() -> list[Any]:
        waiting: list[int] = []
        async with AsyncClient(desk.url, desk.token) as client, asyncio.timeout(LIMIT_S):
            return await asyncio.gather(*(call(client, n, waiting) for n in range(40)))

    assert [[n, f"W{n}", f"A{n}"] for n in range(40)] == asyncio.run(call_all())


def test_a_failure_of_a_program(desk: ServiceProcess) -> None:
    """It is an error here, and `koi ask` ends as `koi run` does."""
    with Client(desk.url, desk.token) as client, pytest.raises(RemoteCallError, match="no such city"):
        client.ask("Writer.fail", {})
    failed = ask(desk, "Writer.fail")
    good = ask(desk, "Writer.write", '{"n": 4}')
    quiet = ask(desk, "Writer.write", '{"n": 4}', "--json")
    answered = ask(desk, "Writer.sign", "--json", stdin="Ann\nBob\n")

    assert (1, "", "error: no such city\n") == (failed.returncode, failed.stdout, failed.stderr)
    assert (0, "about 4\n8\n", "") == (good.returncode, good.stdout, good.stderr)
    assert (8, "about 4\n") == (json.loads(quiet.stdout), quiet.stderr)
    assert [None, "Ann", "Bob"] == json.loads(answered.stdout)


def ask(service: ServiceProcess, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The outcome of `koi ask`."""
    environment = {**Project(service.folder).environment, "KOI_SERVE_TOKEN": service.token}
    return forks.run(("ask", service.url, *words), service.folder, environment, stdin, LIMIT_S)
