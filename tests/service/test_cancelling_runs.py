"""A run that is cancelled leaves nothing: within a second no process, no request and no timer of it is left."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from tests.llm.server import Answer, ModelServer
from tests.service.hosting import begin, data, hosted_in, play, until_told

PROGRAM = '''
role Worker { can execute }
agent Main : Worker {
  MODEL
  on think(args: Json) { playbook """Think.""" }
  on stay(args: Json) {
    try { console.log("tick"); await new Promise(() => {}) }
    finally { await new Promise((done) => setTimeout(done, 60000)) }
  }
  on tick(args: Json) {
    setInterval(() => console.log("tick"), 20)
    await Promise.all([new Promise(() => {}), new Promise((done) => setTimeout(done, 90000))])
  }
}
'''
MOST_S = 1.0
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


async def cancel(session: HostedSession) -> float:
    """End what is under way as a request does; gives how many seconds that takes."""
    started = time.monotonic()
    await data(session, "abort")
    return time.monotonic() - started


async def cancel_once(host: SessionHost, handler: str, is_begun: Callable[[], Any]) -> tuple[float, int]:
    """How long it takes to cancel a handler once something has begun, and how many tasks are left of it."""
    session = await begin(host)
    before = asyncio.all_tasks()
    await data(session, "run_playbook", name=handler, args={})
    while not is_begun():  # noqa: ASYNC110  (it happens outside of the loop)
        await asyncio.sleep(0.02)
    took = await cancel(session)
    await asyncio.sleep(max(0.0, MOST_S - took))
    return took, len(asyncio.all_tasks() - before)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_process_is_left(tmp_path: Path, command: str) -> None:
    """A command that an agent runs ends with it, with all that it has started, also where it does not want to."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", ""))
    act = {"id": "a", "intent": "shell", "command": command, "description": "to wait"}
    (tmp_path / "answers.json").write_text(json.dumps({"Think": [act]}))
    options = {"answers": str(tmp_path / "answers.json"), "allow": ("shell",)}

    async def scenario(host: SessionHost) -> None:
        took, left = await cancel_once(host, "Main.think", lambda: processes("sleep 9876"))
        assert ([], 0) == (processes("sleep 9876"), left)
        assert took < MOST_S

    play(tmp_path, scenario, "main.koi", **options)


def test_no_request_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection to a model that has not answered is closed, and it is not asked again."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    async def scenario(host: SessionHost) -> None:
        took, left = await cancel_once(host, "Main.think", lambda: server.requests)
        assert (1, 0, 0) == (len(server.requests), left - len(server.tasks), connections_to(server))
        assert took < MOST_S

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
        took = await cancel(session)
        size = session.feed.journal.stat().st_size
        await asyncio.sleep(MOST_S - took)
        assert (size, set()) == (session.feed.journal.stat().st_size, asyncio.all_tasks() - before)

    play(tmp_path, scenario, "main.koi")


def test_who_cleans_up_for_ever_is_ended(tmp_path: Path) -> None:
    """Cancelling, and the end of the service, do not wait for code that wants a minute for it."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("MODEL", ""))

    async def scenario(host: SessionHost) -> None:
        session = await begin(host, "Main.stay")
        await until_told(session, lambda message: b'"tick' in message)
        assert await cancel(session) < MOST_S
        await data(session, "run_playbook", name="Main.stay", args={})
        started = time.monotonic()
        await session.sleep()
        assert time.monotonic() - started < MOST_S

    play(tmp_path, scenario, "main.koi")
