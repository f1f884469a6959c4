"""Playbooks through a real SDK and a model server to what they take beside the bare SDK with the same requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

from benchmarks.measuring import Figure
from benchmarks.playbooks import run_playbook
from benchmarks.programs import PLAYBOOKS
from benchmarks.serving import BODIES, serving
from koi_lang.events import Event
from koi_lang.llm.connect import connect
from koi_lang.llm.messages import Adapter
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader

DELEGATES, LATENCY_S = 100, 1.0
STEPS, RUNS = 50, 7
# How many turns a call has, how often it is measured, and the most that one of its last turns may take.
LENGTHS = ((10, 7, 1.3), (100, 5, 1.3), (1000, 3, 1.0))
LAST = 5
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-sonnet-4-6"}

Body = Mapping[str, Any]


def figures(folder: Path) -> list[Figure]:
    """Many delegates at a time, and CPU time of a request."""
    path = folder / "asking.koi"
    path.write_text(PLAYBOOKS, "utf-8")
    module = loader.load(str(path))
    return [asyncio.run(_fan_out(module)), asyncio.run(_cpu(module)), *map(asyncio.run, _in_long_calls(module))]


async def _fan_out(module: ModuleType) -> Figure:
    """Delegates that ask at the same time, against as many bare requests; a first round opens what stays open."""
    ratios = []
    async with serving(LATENCY_S, steps=0) as url:
        for _ in range(6):
            delegates_s = await _timed(_delegate(module, url))
            ratios.append(delegates_s / await _timed(_ask_together(url, (await _bodies(url))[-DELEGATES:])))
    return Figure(f"{DELEGATES} delegates against {DELEGATES} requests", 1.15, ratios[1:], "×")


async def _timed(work: Any) -> float:
    start_s = time.perf_counter()
    await work
    return time.perf_counter() - start_s


async def _delegate(module: ModuleType, url: str) -> None:
    delegates = [{"actionType": "delegate", "intent": "asker::ask", "data": {"n": n}} for n in range(DELEGATES)]
    lead = ScriptedModel(
        [{"batch": [{"parallel": delegates}]}, {"actionType": "direct", "intent": "return", "data": {}}]
    )
    await run_playbook(module.Lead, lambda options: _openai(url) if options else lead, concurrency=DELEGATES)


async def _cpu(module: ModuleType) -> Figure:
    """One playbook of many turns, against bare requests with the bodies it has sent; the first run warms up."""
    ratios = []
    async with serving(0.0, steps=STEPS - 1) as url:
        for _ in range(RUNS + 1):
            ours_s = await run_playbook(module.Single, lambda _: _openai(url))
            bodies = (await _bodies(url))[-STEPS:]
            ratios.append(ours_s / await _cpu_of_asking(url, bodies))
    return Figure("CPU of a turn against a bare request", 1.3, ratios[1:], "×")


def _in_long_calls(module: ModuleType) -> Iterator[Coroutine[Any, Any, Figure]]:
    for turns, times, target in LENGTHS:
        for provider in MODELS:
            yield _late_turns(module, provider, turns, times, target)


async def _late_turns(module: ModuleType, provider: str, turns: int, times: int, target: float) -> Figure:
    """The last turns of a call through an SDK, against bare requests with the bodies that they have sent."""
    ratios = []
    async with serving(0.0, steps=turns - 1) as url:
        for _ in range(times + 1):
            ends_s: list[float] = []
            await run_playbook(module.Single, lambda _: _model(provider, url), [partial(_note_end, ends_s)])
            bodies = (await _bodies(url))[-LAST - 1 : -1]  # the last one of all returns
            ours_s = ends_s[-2] - ends_s[-2 - LAST]
            ratios.append(ours_s / await _cpu_of_asking(url, bodies, provider))
    return Figure(f"CPU of turn {turns:,}, {provider}, against the bare SDK", target, ratios[1:], "×")


def _note_end(ends_s: list[float], event: Event) -> None:
    if event.type == "action_ended":
        ends_s.append(time.process_time())


def _openai(url: str) -> Adapter:
    return _model("openai", url)


def _model(provider: str, url: str) -> Adapter:
    return connect(
        {"provider": provider, "model": MODELS[provider], "base_url": _base_url(provider, url)}, lambda _: None
    )


def _base_url(provider: str, url: str) -> str:
    return f"{url}/v1" if provider == "openai" else url


async def _bodies(url: str) -> list[Body]:
    """The bodies of all requests that the server has seen."""
    page = await asyncio.to_thread(_read, url + BODIES)
    bodies: list[Body] = json.loads(page)
    return bodies


def _read(url: str) -> bytes:
    with urlopen(url) as page:
        content: bytes = page.read()
        return content


async def _cpu_of_asking(url: str, bodies: Sequence[Body], provider: str = "openai") -> float:
    """Seconds of CPU time of bare requests, one after the other; the first one of a client is not counted."""
    async with _client(url, provider) as client:
        await _ask(client, bodies[0])
        start_s = time.process_time()
        for body in bodies:
            await _ask(client, body)
        return time.process_time() - start_s


async def _ask_together(url: str, bodies: Sequence[Body]) -> None:
    async with _client(url, "openai") as client:
        await asyncio.gather(*(_ask(client, body) for body in bodies))


def _client(url: str, provider: str) -> Any:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    made = AsyncOpenAI if provider == "openai" else AsyncAnthropic
    return made(api_key="none", base_url=_base_url(provider, url), max_retries=0)


async def _ask(client: Any, body: Body) -> None:
    sends = client.chat.completions if hasattr(client, "chat") else client.messages
    stream: Any = await sends.create(**body)
    async with stream:
        async for _ in stream:
            pass
