"""Playbooks with a scripted model to when their actions run, what an action costs, and how much a model is told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.measuring import Figure, repeat
from benchmarks.programs import PLAYBOOKS
from koi_lang.events import Event
from koi_lang.llm.messages import Adapter, Delta, Request, StreamEnd, TextDelta
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

ACTIONS = 20
TOKENS_PER_S, TOKEN = 50, 4
LINES = [{"number": n, "item": f"tea of kind {n}", "inStock": True} for n in range(10)]
RESULT = json.dumps({"actionType": "direct", "intent": "return", "data": {"done": True, "lines": LINES}})
RETURN = '{"actionType":"direct","intent":"return","data":{"done":true}}'


class Quiet(SilentHost):
    """A host that shows nothing."""

    def print(self, text: str) -> None:
        """Leave the terminal alone."""


class Typing:
    """A model that writes its first answer a token at a time, at the speed of a real one, and then returns.

    Attributes:
        share: how much of the answer has been written.
        ended_s: when its last token was.
    """

    provider = model = "typing"

    def __init__(self, answer: str) -> None:
        self._answer, self._asked = answer, 0
        self.share = self.ended_s = 0.0

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer, on time: a token late does not delay the following ones."""
        self._asked += 1
        if self._asked > 1:
            yield TextDelta(RETURN)
            yield StreamEnd(None, "stop")
            return
        start_s, text = time.perf_counter(), self._answer
        for number, start in enumerate(range(0, len(text), TOKEN), 1):
            await asyncio.sleep(start_s + number / TOKENS_PER_S - time.perf_counter())
            self.share, self.ended_s = min(1.0, (start + TOKEN) / len(text)), time.perf_counter()
            yield TextDelta(text[start : start + TOKEN])
        yield StreamEnd(None, "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


def figures(folder: Path) -> list[Figure]:
    """Actions while an answer streams, CPU time of an action, and characters of ten requests."""
    path = folder / "playbooks.koi"
    path.write_text(PLAYBOOKS, "utf-8")
    module = loader.load(str(path))
    return [*_streaming(module), *_costs(module), *_told(module)]


async def run_playbook(
    agent: type[Agent], connect: Callable[[Any], Adapter], consumers: Sequence[Consumer] = (), **limits: int
) -> float:
    """Have an agent `start`; gives its CPU seconds."""
    async with Run(Services(connect, Quiet(), consumers=consumers, limits=limits)) as run:
        start_s = time.process_time()
        await run.call(agent, "start", {})
        return time.process_time() - start_s


# ---------------------------------------------------------------- while an answer streams


def _streaming(module: ModuleType) -> list[Figure]:
    measured = [asyncio.run(_stream(module)) for _ in range(3)]
    shares, late_ms = [share for share, _ in measured], [late for _, late in measured]
    return [
        Figure(f"arrived when the first of {ACTIONS} actions starts", 10, shares, "%"),
        Figure(f"last token to the end of {ACTIONS} actions", 50, late_ms, "ms"),
    ]


async def _stream(module: ModuleType) -> tuple[float, float]:
    """Percent of the answer that the first action waited for; milliseconds that the last one took after the end."""
    delegated = [{"actionType": "delegate", "intent": "worker::work", "data": {"n": n}} for n in range(ACTIONS)]
    model = Typing(json.dumps({"batch": delegated}))
    shares: list[float] = []
    ends_s: list[float] = []

    def watch(event: Event) -> None:
        if event.type == "action_started":
            shares.append(model.share)
        if event.type == "action_ended" and event.fields["intent"] == "worker::work":
            ends_s.append(time.perf_counter())

    await run_playbook(module.Lead, lambda _: model, [watch])
    if len(ends_s) != ACTIONS:
        raise AssertionError(f"{len(ends_s)} of {ACTIONS} actions were carried out")
    return shares[0] * 100, max(0.0, ends_s[-1] - model.ended_s) * 1000


# ---------------------------------------------------------------- CPU time


def _costs(module: ModuleType) -> list[Figure]:
    costs = [
        Figure(f"CPU of an action, {count:,} a run", 1.0, repeat(times, partial(_cost, module.Single, count)), "ms")
        for count, times in ((10, 30), (1000, 5))
    ]
    typed = repeat(40, lambda: _cost(module.Typed, 10, RESULT) / _cost(module.Single, 10, RESULT))
    return [*costs, Figure("the same with a result type", 1.03, typed, "×")]


def _cost(agent: type[Agent], count: int, last: str = RETURN) -> float:
    """Milliseconds of CPU time of an action, where every answer has one."""
    model = ScriptedModel([*print_answers(count - 1), last])
    return asyncio.run(run_playbook(agent, lambda _: model)) / count * 1000


def print_answers(count: int) -> list[str]:
    """Answers of a model that has one thing after the other printed."""
    return [json.dumps({"actionType": "direct", "intent": "print", "message": f"n {n}"}) for n in range(count)]


# ---------------------------------------------------------------- what a model is told


def _told(module: ModuleType) -> list[Figure]:
    model = ScriptedModel([*print_answers(9), RETURN])
    asyncio.run(run_playbook(module.Single, lambda _: model))
    told = [request.system + "".join(message.text for message in request.messages) for request in model.requests]
    shares = [count_shared(one, following) / len(one) * 100 for one, following in pairwise(told)]
    return [
        Figure("characters told in ten steps", 55_000, [sum(map(len, told))], ""),
        Figure("of a request that the next one begins with", 90, [min(shares)], "%", at_least=True),
    ]


def count_shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
