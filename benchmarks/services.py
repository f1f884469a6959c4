"""A service with many sessions to its promises: how soon a run begins and is heard, what sleeping sessions take."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2

from benchmarks.measuring import Figure, environment

TOKEN = "a-token-for-benchmarks"
PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  on quick(args: { n: number }) { console.log(args.n) }
  on count(args: { times: number, ms: number }) {
    for (let n = 0; n < args.times; n++) {
      await new Promise((done) => setTimeout(done, args.ms))
      console.log(n)
    }
  }
}
"""


@dataclass(frozen=True, slots=True)
class ServiceSize:
    """How much is measured.

    Attributes:
        begun: runs that are begun one after the other.
        together: runs that are followed at a time.
        asleep: sessions that sleep.
        entries: of the session that wakes.
    """

    begun: int = 20
    together: int = 100
    asleep: int = 1000
    entries: int = 200


@dataclass(slots=True)
class ServiceClient:
    """A client of a service in a process of its own."""

    http: httpx2.AsyncClient
    pid: int
    page: str = ""

    async def begin(self, handler: str = "", **payload: Any) -> str:
        """The id of a new run."""
        body = {"handler": handler, "payload": payload} if handler else {}
        answer = await self.http.post("/api/runs", json=body)
        answer.raise_for_status()
        return str(answer.json()["id"])

    async def messages(self, run: str) -> AsyncIterator[dict[str, Any]]:
        """What is told of a run."""
        async with self.http.stream("GET", f"/api/runs/{run}/events") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    async def wait_for(self, run: str, type: str) -> float:
        """When an event of a type of a run has arrived, in seconds of the monotonic clock."""
        async for message in self.messages(run):
            if message.get("event", {}).get("type") == type:
                return time.monotonic()
        raise AssertionError(f"`{run}` has ended without `{type}`")

    def memory(self) -> float:
        """Bytes of memory that the service has."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ServiceClient]:
    """A service of the program, as long as the block; sessions sleep after a moment without use."""
    (folder / "main.koi").write_text(PROGRAM)
    (folder / "koi.toml").write_text("[serve.limits]\nidle = 0.2\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "koi_lang", "serve", "http", "main.koi", "--http", "127.0.0.1:0"),
        cwd=folder, stderr=asyncio.subprocess.PIPE, env={**environment(), "KOI_SERVE_TOKEN": TOKEN},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        found = None
        while found is None:
            line = (await process.stderr.readline()).decode()
            assert line, "the service has ended"
            found = re.search(r"serving at (http://[^/\s]+)/", line)
        limits = httpx2.Limits(max_connections=None)
        shown = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=found[1], headers=shown, timeout=60.0, limits=limits) as http:
            yield ServiceClient(http, process.pid)
    finally:
        process.terminate()
        await process.wait()


@dataclass(slots=True)
class ServiceTimes:
    """What was measured, in seconds and megabytes."""

    accepted: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    asleep_mb: float = 0.0
    wake: float = 0.0
    page: float = 0.0


async def measure(folder: Path, size: ServiceSize) -> ServiceTimes:
    """The times of a service."""
    times = ServiceTimes()
    async with serving(folder) as client:
        await client.wait_for(await client.begin("Main.quick", n=0), "call_ended")
        for n in range(size.begun):
            await _begin_one(client, n, times)
        times.page = await _time_page(client)
        times.told = await _follow_many(client, size.together)
        times.wake = await _wake_one(client, size.entries)
        times.asleep_mb = await _put_to_sleep(client, size.asleep)
    return times


async def _begin_one(client: ServiceClient, n: int, times: ServiceTimes) -> None:
    started = time.monotonic()
    run = await client.begin("Main.quick", n=n)
    accepted = time.monotonic()
    times.accepted.append(accepted - started)
    times.first.append(await client.wait_for(run, "run_started") - accepted)


async def _time_page(client: ServiceClient) -> float:
    """How long the page takes with all that it loads at once."""
    started = time.monotonic()
    page = (await client.http.get("/")).text
    await asyncio.gather(*(client.http.get(f"/{name}") for name in re.findall(r'(?:src|href)="([^":#]+)"', page)))
    return time.monotonic() - started


async def _follow_many(client: ServiceClient, count: int) -> list[float]:
    """How long after its moment each event of many runs reaches who follows them."""

    async def follow(run: str) -> list[float]:
        late: list[float] = []
        async for message in client.messages(run):
            event = message.get("event", {})
            if event.get("type") == "printed":
                late.append(time.time() - event["ts"])
            if event.get("type") == "call_ended":
                break
        return late

    runs = await asyncio.gather(*(client.begin() for _ in range(count)))
    reading = [asyncio.create_task(follow(run)) for run in runs]
    await asyncio.sleep(1.0)
    command = {"type": "run_playbook", "name": "Main.count", "args": {"times": 10, "ms": 200}}
    await asyncio.gather(*(client.http.post("/api/command", json={"run": run, **command}) for run in runs))
    return [each for late in await asyncio.gather(*reading) for each in late]


async def _wake_one(client: ServiceClient, entries: int) -> float:
    """How long a session that sleeps takes to answer, with a journal of some entries."""
    run = await client.begin("Main.count", times=entries, ms=0)
    await client.wait_for(run, "call_ended")
    await _until_asleep(client, 0)
    started = time.monotonic()
    answer = await client.http.post("/api/command", json={"run": run, "type": "get_state"})
    assert answer.json()["success"], answer.text
    return time.monotonic() - started


async def _put_to_sleep(client: ServiceClient, count: int) -> float:
    """Megabytes by which the service grows with so many sessions that sleep."""
    await _until_asleep(client, 0)
    before = client.memory()
    for start in range(0, count, 20):
        runs = await asyncio.gather(*(client.begin("Main.quick", n=n) for n in range(start, min(start + 20, count))))
        await client.wait_for(runs[-1], "call_ended")
    await _until_asleep(client, 0)
    return (client.memory() - before) / 1e6


async def _until_asleep(client: ServiceClient, awake: int) -> None:
    """Wait until no more than some sessions are awake."""
    while True:
        known = (await client.http.get("/api/status")).json()["sessions"]
        if sum(count for state, count in known.items() if state != "asleep") <= awake:
            return
        await asyncio.sleep(0.1)


def figures(folder: Path, size: ServiceSize = ServiceSize()) -> list[Figure]:
    """What a service promises."""
    times = asyncio.run(measure(folder, size))
    late: Sequence[float] = times.told
    return [
        Figure("a run is begun: request to 202", 0.050, times.accepted, "s"),
        Figure("its first event, behind that", 0.100, times.first, "s"),
        Figure(f"an event of {size.together} runs reaches its reader (p95)", 0.150, [quantiles(late, n=20)[-1]], "s"),
        Figure(f"a session of {size.entries} entries wakes", 1.0, [times.wake], "s"),
        Figure(f"{size.asleep} sleeping sessions (MB)", 100.0, [times.asleep_mb], "MB"),
        Figure("the page with what it loads", 1.0, [times.page], "s"),
    ]
