"""A run that is cancelled leaves nothing: soon no process, no request and no timer of it is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.service.host import SessionHost
from tests.llm.server import Answer, ModelServer
from tests.service.hosting import begin, data, hosted_in, play, until_told

PROGRAM = '''
role Worker { can execute }
agent Main : Worker {
  MODEL
  on think(args: Json) { playbook """Think.""" }
  on stay(args: Json) {
    try { console.log("tick"); await new Promise(() => {}) }
    finally { await new Promise((done) => setTimeout(done, 3600000)) }
  }
  on tick(args: Json) {
    setInterval(() => console.log("tick"), 20)
    await Promise.all([new Promise(() => {}), new Promise((done) => setTimeout(done, 3600000))])
  }
}
'''
# Long enough for a timer of the program, which fires every 20 ms.
WHILE_S = 0.5
ESTABLISHED = "01"
# Processes that end when they are asked to, and such that do not.
COMMANDS = ("sleep 98761", "trap '' TERM; sleep 98762 & sleep 98763; sleep 98764")


def processes(*words: str) -> list[str]:
    """The command lines of processes that hold one of some words."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in lines if any(word in line for word in words)]


def connections_to(server: ModelServer) -> int:
    """How many connections to a server are open at the other end."""
    port = f":{int(server.url.rpartition(':')[2]):04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == ESTABLISHED for row in rows)


async def wait_for(holds: Callable[[], Any]) -> None:
    """Wait until something holds that happens outside of the loop."""
    while not holds():  # noqa: ASYNC110  (nothing tells it)
        await asyncio.sleep(0.02)


async def cancel_once(
    host: SessionHost, handler: str, is_begun: Callable[[], Any], ours: Callable[[], set[asyncio.Task[Any]]] = set
) -> None:
    """Cancel a handler, as a request does, once something has begun, and wait until no task is left of it."""
    session = await begin(host)
    before = asyncio.all_tasks()
    await data(session, "run_playbook", name=handler, args={})
    await wait_for(is_begun)
    await data(session, "abort")
    await wait_for(lambda: not asyncio.all_tasks() - before - ours())


@pytest.mark.parametrize("command", COMMANDS)
def test_no_process_is_left(tmp_path: Path, command: str) -> None:
    """A command that an agent runs ends with it, with all that it has started, also where it does not want to."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", ""))
    act = {"id": "a", "intent": "shell", "command": command, "description": "to wait"}
    (tmp_path / "answers.json").write_text(json.dumps({"Think": [act]}))
    options = {"answers": str(tmp_path / "answers.json"), "allow": ("shell",)}

    async def scenario(host: SessionHost) -> None:
        await cancel_once(host, "Main.think", lambda: processes("sleep 9876"))
        await wait_for(lambda: not processes("sleep 9876"))

    play(tmp_path, scenario, "main.koi", **options)


def test_no_request_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection to a model that has not answered is closed, and it is not asked again."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    async def scenario(host: SessionHost) -> None:
        await cancel_once(host, "Main.think", lambda: server.requests, lambda: server.tasks)
        await wait_for(lambda: connections_to(server) == 0)
        assert 1 == len(server.requests)

    async def play() -> None:
        nonlocal server
        async with server:
            llm = f'llm default = {{ provider: "openai", model: "gpt-4o", base_url: "{server.url}/v1" }}'
            (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", llm))
            await hosted_in(tmp_path, scenario, "main.koi")

    server = ModelServer([Answer(silent=True)])
    asyncio.run(play())


def test_no_timer_is_left(tmp_path: Path) -> None:
    """Timers that a handler has set do not fire any more, and nothing waits for them."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", ""))

    async def scenario(host: SessionHost) -> None:
        session = await begin(host)
        before = asyncio.all_tasks()
        await data(session, "run_playbook", name="Main.tick", args={})
        await until_told(session, lambda message: b'"tick' in message)
        await data(session, "abort")
        size = session.feed.journal.stat().st_size
        await asyncio.sleep(WHILE_S)
        assert (size, set()) == (session.feed.journal.stat().st_size, asyncio.all_tasks() - before)

    play(tmp_path, scenario, "main.koi")


def test_who_cleans_up_for_ever_is_ended(tmp_path: Path) -> None:
    """Cancelling, and the end of the service, do not wait for code that wants an hour for it."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", ""))

    async def scenario(host: SessionHost) -> None:
        session = await begin(host, "Main.stay")
        await until_told(session, lambda message: b'"tick' in message)
        await data(session, "abort")
        await data(session, "run_playbook", name="Main.stay", args={})
        await session.sleep()

    play(tmp_path, scenario, "main.koi")
