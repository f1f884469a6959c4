"""Playbooks through a real SDK and a model server to what they take beside the bare SDK with the same requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from benchmarks.measuring import Figure
from benchmarks.playbooks import run_playbook
from benchmarks.programs import PLAYBOOKS
from benchmarks.serving import BODIES, serving
from koi_lang.llm.connect import connect
from koi_lang.llm.messages import Adapter
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader

if TYPE_CHECKING:
    from openai import AsyncOpenAI

DELEGATES, LATENCY_S = 100, 1.0
STEPS, RUNS = 50, 7

Body = Mapping[str, Any]


def figures(folder: Path) -> list[Figure]:
    """Many delegates at a time, and CPU time of a request."""
    path = folder / "asking.koi"
    path.write_text(PLAYBOOKS, "utf-8")
    module = loader.load(str(path))
    return [asyncio.run(_fan_out(module)), asyncio.run(_cpu(module))]


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


def _openai(url: str) -> Adapter:
    return connect({"provider": "openai", "model": "gpt-4o-mini", "base_url": f"{url}/v1"}, lambda _: None)


async def _bodies(url: str) -> list[Body]:
    """The bodies of all requests that the server has seen."""
    page = await asyncio.to_thread(_read, url + BODIES)
    bodies: list[Body] = json.loads(page)
    return bodies


def _read(url: str) -> bytes:
    with urlopen(url) as page:
        content: bytes = page.read()
        return content


async def _cpu_of_asking(url: str, bodies: Sequence[Body]) -> float:
    start_s = time.process_time()
    async with _client(url) as client:
        for body in bodies:
            await _ask(client, body)
    return time.process_time() - start_s


async def _ask_together(url: str, bodies: Sequence[Body]) -> None:
    async with _client(url) as client:
        await asyncio.gather(*(_ask(client, body) for body in bodies))


def _client(url: str) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)


async def _ask(client: AsyncOpenAI, body: Body) -> None:
    stream: Any = await client.chat.completions.create(**body)
    async with stream:
        async for _ in stream:
            pass
