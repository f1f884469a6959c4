"""What the journals of runs cost beside the same runs without, one by one and many at once, and lasting effects."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks.measuring import Figure
from benchmarks.playbooks import RETURN, Quiet, print_answers
from benchmarks.programs import PLAYBOOKS
from koi_lang.events import ActionStarted, Event
from koi_lang.llm.messages import Adapter, Delta, Request, StreamEnd, TextDelta
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.line_ends import Signer
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

SIGNER = Signer(b"0123456789abcdef" * 2, "/work")
ACTIONS, LATENCY_S, PAIRS, EFFECTS = 200, 0.010, 7, 200
RUNS, ACTIONS_OF_MANY, PAIRS_OF_MANY = 1000, 10, 3


class Slow:
    """A model that answers with one action after a wait, and in the end returns."""

    provider = model = "slow"

    def __init__(self) -> None:
        self._asked = 0

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Wait, then give the next answer in one piece."""
        self._asked += 1
        await asyncio.sleep(LATENCY_S)
        printing = json.dumps(
            {"actionType": "direct", "intent": "print", "message": f"order {self._asked} is complete"}
        )
        yield TextDelta(printing if self._asked < ACTIONS else RETURN)
        yield StreamEnd(None, "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


def figures(folder: Path) -> list[Figure]:
    """A run with a journal against one without, and the wait before an effect that must not happen twice."""
    path = folder / "journal.koi"
    path.write_text(PLAYBOOKS, "utf-8")
    module = loader.load(str(path))
    asyncio.run(_run(module, None))
    ratios = [asyncio.run(_run(module, folder)) / asyncio.run(_run(module, None)) for _ in range(PAIRS)]
    waits = [_wait_ms(folder) for _ in range(PAIRS)]
    return [
        Figure(f"{ACTIONS} actions with a journal", 1.03, ratios, "×"),
        Figure(f"CPU of {RUNS:,} runs at once with journals", 1.3, _shares_of_many(module, folder), "×"),
        Figure("a lasting effect waits for the disk", 10, waits, "ms"),
    ]


def _shares_of_many(module: ModuleType, folder: Path) -> list[float]:
    """CPU time of many runs in one event loop with journals, for each second of the same without."""
    with _enough_files(RUNS):
        asyncio.run(_run_many(module, folder, 10))
        return [
            asyncio.run(_run_many(module, folder, RUNS)) / asyncio.run(_run_many(module, None, RUNS))
            for _ in range(PAIRS_OF_MANY)
        ]


async def _run_many(module: ModuleType, folder: Path | None, count: int) -> float:
    """CPU seconds of some runs at once, whose models answer without a wait."""
    answers = [*print_answers(ACTIONS_OF_MANY - 1), RETURN]
    start_s = time.process_time()
    await asyncio.gather(*(_run(module, folder, lambda _: ScriptedModel(answers)) for _ in range(count)))
    return time.process_time() - start_s


@contextmanager
def _enough_files(count: int) -> Iterator[None]:
    """Have so many files open at once; each journal that is written is one."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(least, count + 100)), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


async def _run(module: ModuleType, folder: Path | None, connect: Callable[[Any], Adapter] = lambda _: Slow()) -> float:
    """Seconds of a run, recorded if there is a folder for it."""
    run = Run(Services(connect, Quiet(), detailed=folder is not None))
    start_s = time.perf_counter()
    if folder is None:
        async with run:
            await run.call(module.Single, "start", {})
        return time.perf_counter() - start_s
    with _writer(folder, run.id) as writer:
        run.events.subscribe(writer)
        async with run:
            await run.call(module.Single, "start", {})
    return time.perf_counter() - start_s


@contextmanager
def _writer(folder: Path, run: str) -> Iterator[Writer]:
    header = Header(run, time.time(), "journal.koi", "", "")
    writer = Writer(path_of(folder, run), header, redactor({"SOME_API_KEY": "0123456789abcdef"}), print, SIGNER)
    try:
        yield writer
    finally:
        writer.close()


def _wait_ms(folder: Path) -> float:
    """Milliseconds, in the median, until the beginning of an effect is on the disk."""
    with _writer(folder, f"effects-{time.time_ns()}") as writer:
        return median(_announced_ms(writer, number) for number in range(EFFECTS))


def _announced_ms(writer: Writer, number: int) -> float:
    start_s = time.perf_counter()
    data = ActionStarted("shell", "", {"command": "git status"}, lasting=True)
    writer(Event(number, time.time(), "effects", "Ada", data, ("Ada.start#1", f"shell#{number}")))
    return (time.perf_counter() - start_s) * 1000
