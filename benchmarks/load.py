"""A service under load: its costs beside a plain web service, sessions that sleep, thousands of conversations.

`python -m benchmarks load` measures all of it; `python -m benchmarks.load 10000` has so many conversations.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2

from benchmarks.measuring import Figure, environment

TOKEN = "a-token-for-benchmarks"
MAX_FILES = 1024
CONVERSATIONS = 1500
# Conversations at a time, and points at which the service is looked at.
AT_ONCE, SAMPLES = 10, 10
PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on chat(args: { message: string }) { this.state.count += 1  return args.message }
  on count(args: { times: number, ms: number }) {
    for (let n = 0; n < args.times; n++) {
      await new Promise((done) => setTimeout(done, args.ms))
      console.log(n)
    }
  }
}
agent Helper : Worker {
  on chat(args: { message: string }) {
    playbook \"\"\"Answer ${args.message} in a sentence.\"\"\"
  }
}
"""
# A provider that answers each request after 0.3 s. It runs in a process of its own.
PROVIDER = """
import asyncio, json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

ANSWER = json.dumps({"intent": "return", "data": "It depends on what you would like to have in the end."})

async def answer(request):
    await request.body()
    async def pieces():
        await asyncio.sleep(0.3)
        for delta, stop in (({"content": ANSWER[:40]}, None), ({"content": ANSWER[40:]}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": stop}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            yield f"data: {json.dumps(chunk)}\\n\\n"
        yield "data: [DONE]\\n\\n"
    return StreamingResponse(pieces(), media_type="text/event-stream")

app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""
# The least that a service of conversations needs: nothing is kept on a disk, checked or limited. It has the event loop
# that Koi has, whether or not a faster one is installed.
FLOOR = """
import asyncio, json, os, sys, time, uuid
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse, StreamingResponse
from openai import AsyncOpenAI

app, runs, tasks = FastAPI(), {}, set()
model = AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="none")

async def work(run, body):
    handler, payload = body.get("handler", ""), body.get("payload", {})
    if handler == "Helper.chat":
        messages = [{"role": "user", "content": payload["message"]}]
        text = ""
        async for chunk in await model.chat.completions.create(model="m", messages=messages, stream=True):
            text += chunk.choices[0].delta.content or ""
        await tell(run, "printed", message=text)
    for n in range(payload.get("times", 0)):
        await asyncio.sleep(payload["ms"] / 1000)
        await tell(run, "printed", message=n)
    await tell(run, "call_ended", ok=True)

async def tell(run, type, **fields):
    async with run["news"]:
        run["events"].append({"type": "event", "event": {"type": type, "ts": time.time(), **fields}})
        run["news"].notify_all()

def begin(run, body):
    task = asyncio.create_task(work(run, body))
    tasks.add(task)
    task.add_done_callback(tasks.discard)

@app.post("/api/runs")
async def begin_run(body: dict):
    id = uuid.uuid4().hex
    runs[id] = {"events": [], "news": asyncio.Condition()}
    if body:
        begin(runs[id], body)
    return JSONResponse({"id": id}, 202)

@app.post("/api/runs/{id}/calls")
async def begin_call(id: str, body: dict, wait: int = 0):
    begin(runs[id], body)
    if wait:
        await asyncio.wait(tasks)
    return JSONResponse({"id": id}, 202)

@app.get("/api/health")
async def health():
    return {"ok": True}

@app.get("/api/runs/{id}/events")
async def events(id: str):
    async def follow():
        run, at = runs[id], 0
        while True:
            async with run["news"]:
                await run["news"].wait_for(lambda: len(run["events"]) > at)
            for event in run["events"][at:]:
                yield f"data: {json.dumps(event)}\\n\\n"
            at = len(run["events"])
    return StreamingResponse(follow(), media_type="text/event-stream")

uvicorn.run(app, port=int(sys.argv[1]), log_level="error", loop="asyncio")
"""


@dataclass(frozen=True, slots=True)
class LoadSize:
    """How much is measured.

    Attributes:
        begun: runs that are begun one after the other.
        messages: further calls of one session.
        followed: runs that are followed at a time.
        chats: chats with a model at a time.
        asleep: sessions that sleep.
        entries: of the session that wakes.
        rounds: how often both services are measured in turn.
    """

    begun: int = 40
    messages: int = 100
    followed: int = 100
    chats: int = 200
    asleep: int = 1000
    entries: int = 200
    rounds: int = 3


@dataclass(slots=True)
class LoadTimes:
    """Measured costs of one service, in seconds; of CPU where the name says so.

    Attributes:
        longest_wait_cpu: of the service while somebody waits, which no other process makes longer.
    """

    accepted: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    message_cpu: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    chat_cpu: list[float] = field(default_factory=list)
    chats_ended: list[int] = field(default_factory=list)
    longest_wait: float = 0.0
    longest_wait_cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class SleepTimes:
    """What sleeping sessions take in megabytes, and how long one needs to wake and the page to load, in seconds."""

    wake: float
    page: float
    asleep_mb: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A service at one point of a load: conversations so far, its open files and its memory in megabytes."""

    conversations: int
    files: int
    memory_mb: float


@dataclass(frozen=True, slots=True)
class ConversationLoad:
    """The outcome of many conversations.

    Attributes:
        statuses: how often each status was answered; 503 asks the client to come again.
        took_s: for all of them.
        samples: the service at points in between.
    """

    statuses: Counter[int]
    took_s: float
    samples: list[Sample]

    def grown_kb(self) -> float:
        """Kilobytes of memory for each conversation behind the first tenth."""
        first, last = self.samples[0], self.samples[-1]
        return (last.memory_mb - first.memory_mb) * 1000 / max(1, last.conversations - first.conversations)


@dataclass(slots=True)
class LoadedService:
    """A service in a process of its own, and its client."""

    http: httpx2.AsyncClient
    pid: int

    async def begin(self, handler: str = "", **payload: Any) -> str:
        """The id of a new run; who is asked to come again does so."""
        body = {"handler": handler, "payload": payload} if handler else {}
        while True:
            answer = await self.http.post("/api/runs", json=body)
            if answer.status_code != 503:
                answer.raise_for_status()
                return str(answer.json()["id"])
            await asyncio.sleep(0.1 * float(answer.headers["Retry-After"]))

    async def events(self, run: str) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a run until its call has ended."""
        async with self.http.stream("GET", f"/api/runs/{run}/events") as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line[6:]).get("event", {}) if line.startswith("data: ") else {}
                if event:
                    yield event
                if event.get("type") == "call_ended":
                    return

    async def wait_for_sleep(self) -> None:
        """Wait until all its sessions sleep."""
        while True:
            sessions = (await self.http.get("/api/status")).json()["sessions"]
            if not any(count for state, count in sessions.items() if state != "asleep"):
                return
            await asyncio.sleep(0.1)

    def cpu_s(self) -> float:
        """Seconds of CPU that its process has had, by the clock that Linux has for each process."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def sample(self, conversations: int) -> Sample:
        """Its open files and memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        memory_mb = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        return Sample(conversations, len(os.listdir(f"/proc/{self.pid}/fd")), memory_mb)


@asynccontextmanager
async def started(folder: Path, *words: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process in a folder with few open files, as long as the block."""
    command = f'ulimit -n {MAX_FILES}; exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", command, "sh", sys.executable, *words),
        cwd=folder, stderr=asyncio.subprocess.PIPE, env={**environment(), **variables},
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def client_of(url: str, pid: int) -> AsyncIterator[LoadedService]:
    """A client of a service that answers."""
    limits, shown = httpx2.Limits(max_connections=None), {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=url, headers=shown, timeout=300.0, limits=limits) as http:
        while True:
            try:
                await http.get("/api/health")
                break
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
        yield LoadedService(http, pid)


@asynccontextmanager
async def koi_service(folder: Path, model_url: str, settings: str = "") -> AsyncIterator[LoadedService]:
    """Koi with the program; `settings` are further ones of `koi.toml`."""
    model = f'{{ provider = "openai", model = "m", base_url = "{model_url}" }}'
    write(folder, {"main.koi": PROGRAM, "koi.toml": f"[models]\ndefault = {model}\n{settings}"})
    words = ("-m", "koi_lang", "serve", "http", "main.koi", "--http", "127.0.0.1:0")
    own = {"KOI_SERVE_TOKEN": TOKEN, "OPENAI_API_KEY": "none", "KOI_TRUST_FOLDER": "1"}
    async with started(folder, *words, **own) as process:
        assert process.stderr is not None
        address = None
        while address is None:
            line = (await process.stderr.readline()).decode()
            assert line, "the service has ended"
            address = re.search(r"serving at (http://[^/\s]+)/", line)
        reading = asyncio.create_task(process.stderr.read())
        async with client_of(address[1], process.pid) as client:
            yield client
        reading.cancel()


@asynccontextmanager
async def plain_service(folder: Path, model_url: str) -> AsyncIterator[LoadedService]:
    """The floor."""
    write(folder, {"floor.py": FLOOR})
    port = free_port()
    async with (
        started(folder, "floor.py", str(port), MODEL_URL=model_url) as process,
        client_of(f"http://127.0.0.1:{port}", process.pid) as client,
    ):
        yield client


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


async def converse(folder: Path, count: int) -> ConversationLoad:
    """Begin so many conversations as fast as the service answers; who is asked to come again does so."""
    statuses, samples = Counter[int](), list[Sample]()
    room, began = asyncio.Semaphore(AT_ONCE), time.monotonic()
    async with koi_service(folder, "http://127.0.0.1:9/v1") as service:

        async def begin(number: int) -> None:
            async with room:
                body = {"message": f"message {number}"}
                while (answer := await service.http.post("/api/runs", json=body)).status_code == 503:
                    statuses[503] += 1
                    await asyncio.sleep(0.1 * float(answer.headers["Retry-After"]))
                statuses[answer.status_code] += 1

        for first in range(0, count, count // SAMPLES):
            last = min(count, first + count // SAMPLES)
            await asyncio.gather(*(begin(number) for number in range(first, last)))
            samples.append(service.sample(last))
    return ConversationLoad(statuses, time.monotonic() - began, samples)


async def measure(folder: Path, size: LoadSize) -> dict[str, LoadTimes]:
    """The costs of Koi and of the floor, in turn, each with the same client and the same provider."""
    port = free_port()
    url, costs = f"http://127.0.0.1:{port}/v1", {"floor": LoadTimes(), "koi": LoadTimes()}
    services: dict[str, Callable[..., Any]] = {"floor": plain_service, "koi": koi_service}
    write(folder, {"provider.py": PROVIDER})
    async with started(folder, "provider.py", str(port)):
        for number in range(size.rounds):
            for name, serve in services.items():  # anew, since sessions of an earlier round have to be put to sleep
                async with serve(folder / f"{name}-{number}", url) as service:
                    await measure_service(service, size, costs[name])
    return costs


async def measure_service(service: LoadedService, size: LoadSize, times: LoadTimes) -> None:
    """Add the costs of one service in one round."""
    async for _ in service.events(await service.begin("Helper.chat", message="the first one")):
        pass
    for _ in range(size.begun):
        started_at = time.monotonic()
        await service.begin("Main.chat", message="hello")
        times.accepted.append(time.monotonic() - started_at)
    for _ in range(size.begun // 4):  # apart: who leaves a stream has to connect again
        run = await service.begin("Main.chat", message="hello")
        accepted_at = time.monotonic()
        async with aclosing(service.events(run)) as events:
            await anext(events)
        times.first.append(time.monotonic() - accepted_at)
    times.message_cpu.append(await _cpu_of(service, _say_often(service, size.messages)) / size.messages)
    times.late += await _follow_many(service, size.followed)
    chats = asyncio.ensure_future(_chat_at_once(service, size.chats))
    waiting = asyncio.create_task(_wait_beside(service, chats))
    times.chat_cpu.append(await _cpu_of(service, chats) / size.chats)
    times.chats_ended.append(chats.result())
    longest, longest_cpu = await waiting
    times.longest_wait = max(times.longest_wait, longest)
    times.longest_wait_cpu = max(times.longest_wait_cpu, longest_cpu)


async def measure_sleep(folder: Path, size: LoadSize) -> SleepTimes:
    """The times of a service whose sessions sleep after a moment without use."""
    async with koi_service(folder, "http://127.0.0.1:9/v1", "[serve.limits]\nidle = 0.2\n") as service:
        run = await service.begin("Main.count", times=size.entries, ms=0)
        async for _ in service.events(run):
            pass
        await service.wait_for_sleep()
        began = time.monotonic()
        woken = await service.http.post("/api/command", json={"run": run, "type": "get_state"})
        wake = time.monotonic() - began
        assert woken.json()["success"], woken.text
        page = await _time_page(service)

        await service.wait_for_sleep()
        before = service.sample(0)
        for first in range(0, size.asleep, AT_ONCE):
            count = min(AT_ONCE, size.asleep - first)
            await asyncio.gather(*(service.begin("Main.chat", message="hello") for _ in range(count)))
        await service.wait_for_sleep()
        return SleepTimes(wake, page, service.sample(size.asleep).memory_mb - before.memory_mb)


async def _time_page(service: LoadedService) -> float:
    """How long the page takes with all that it loads at once."""
    began = time.monotonic()
    page = (await service.http.get("/")).text
    names = re.findall(r'(?:src|href)="([^":#]+)"', page)
    await asyncio.gather(*(service.http.get(f"/{name}") for name in names))
    return time.monotonic() - began


async def _cpu_of(service: LoadedService, work: Awaitable[object]) -> float:
    before = service.cpu_s()
    await work
    return service.cpu_s() - before


async def _say_often(service: LoadedService, count: int) -> None:
    run = await service.begin()
    for number in range(count):
        body = {"handler": "Main.chat", "payload": {"message": f"message {number}"}}
        answer = await service.http.post(f"/api/runs/{run}/calls?wait=30", json=body)
        answer.raise_for_status()


async def _follow_many(service: LoadedService, count: int) -> list[float]:
    """How long after its moment each event of many runs reaches its reader."""

    async def follow(run: str) -> list[float]:
        return [time.time() - event["ts"] async for event in service.events(run) if event["type"] == "printed"]

    runs = await asyncio.gather(*(service.begin() for _ in range(count)))
    reading = [asyncio.create_task(follow(run)) for run in runs]
    await asyncio.sleep(1.0)
    body = {"handler": "Main.count", "payload": {"times": 10, "ms": 200}}
    await asyncio.gather(*(service.http.post(f"/api/runs/{run}/calls", json=body) for run in runs))
    return [each for late in await asyncio.gather(*reading) for each in late]


async def _chat_at_once(service: LoadedService, count: int) -> int:
    """How many of so many chats at once end well."""

    async def chat(number: int) -> bool:
        run = await service.begin("Helper.chat", message=f"question {number}")
        return [event["ok"] async for event in service.events(run) if event["type"] == "call_ended"] == [True]

    return sum(await asyncio.gather(*(chat(number) for number in range(count))))


async def _wait_beside(service: LoadedService, work: asyncio.Future[Any]) -> tuple[float, float]:
    """The longest that somebody else waits for an answer while some work goes on, in seconds and those of CPU."""
    longest, longest_cpu = 0.0, 0.0
    while not work.done():
        began, began_cpu = time.monotonic(), service.cpu_s()
        await service.http.get("/api/health")
        longest = max(longest, time.monotonic() - began)
        longest_cpu = max(longest_cpu, service.cpu_s() - began_cpu)
        await asyncio.sleep(0.05)
    return longest, longest_cpu


def ratios(ours: Sequence[float], plain: Sequence[float]) -> list[float]:
    """How many times as much Koi takes, a figure a round."""
    return [own / least for own, least in zip(ours, plain, strict=True)]


def figures(folder: Path, size: LoadSize = LoadSize(), conversations: int = CONVERSATIONS) -> list[Figure]:
    """The promises of a service under load."""
    costs = asyncio.run(measure(folder, size))
    floor, koi = costs["floor"], costs["koi"]
    sleep = asyncio.run(measure_sleep(folder / "sleep", size))
    load = asyncio.run(converse(folder / "conversations", conversations))
    return [
        Figure("request to 202", 0.050, koi.accepted, "s"),
        Figure("its first event, behind that", 0.100, koi.first, "s"),
        Figure(f"event of {size.followed} runs to its reader (p95)", 0.150, [quantiles(koi.late, n=20)[-1]], "s"),
        Figure(f"a session of {size.entries} entries wakes", 1.0, [sleep.wake], "s"),
        Figure(f"{size.asleep} sleeping sessions", 100.0, [sleep.asleep_mb], "MB"),
        Figure("the page with what it loads", 1.0, [sleep.page], "s"),
        Figure("request to 202, beside the floor", 2.0, [median(koi.accepted) / median(floor.accepted)], "×"),
        Figure("CPU of a further message, beside it", 2.0, ratios(koi.message_cpu, floor.message_cpu), "×"),
        Figure("CPU of a chat with a model, beside it", 1.8, ratios(koi.chat_cpu, floor.chat_cpu), "×"),
        Figure("event to follower, beside it", 1.5, [median(koi.late) / median(floor.late)], "×"),
        Figure(f"of {size.chats} chats at once end well", size.chats, koi.chats_ended, "chats", at_least=True),
        Figure("longest wait of others meanwhile", 1.0, [koi.longest_wait], "s"),
        Figure(f"of {conversations:,} conversations answered", conversations, [load.statuses[202]], "", at_least=True),
        Figure(f"open files, of {MAX_FILES:,}", MAX_FILES * 0.9, [max(each.files for each in load.samples)], "files"),
        Figure("memory for each conversation", 40, [load.grown_kb()], "kB"),
    ]


def main(count: int) -> None:
    """Have so many conversations, and print the service at points in between."""
    with tempfile.TemporaryDirectory() as folder:
        load = asyncio.run(converse(Path(folder), count))
    for each in load.samples:
        print(f"{each.conversations:>7,} conversations  {each.files:>5} files  {each.memory_mb:>7.1f} MB")
    print(f"{dict(load.statuses)} in {load.took_s:.0f} s, {count / load.took_s:.1f} a second")


if __name__ == "__main__":
    main(int(sys.argv[1]))
