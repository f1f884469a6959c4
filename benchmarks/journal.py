"""Recorded runs to what their journal costs beside the same runs without one, and what a lasting effect waits for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks.measuring import Figure
from benchmarks.playbooks import RETURN, Quiet
from benchmarks.programs import PLAYBOOKS
from koi_lang.events import ActionStarted, Event
from koi_lang.llm.messages import Delta, Request, StreamEnd, TextDelta
from koi_lang.program import loader
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.signatures import Signer
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

SIGNER = Signer(b"0123456789abcdef" * 2, "/work")
ACTIONS, LATENCY_S, PAIRS, EFFECTS = 200, 0.010, 7, 200


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
        Figure("a lasting effect waits for the disk", 10, waits, "ms"),
    ]


async def _run(module: ModuleType, folder: Path | None) -> float:
    """Seconds of a run, recorded if there is a folder for it."""
    run = Run(Services(lambda _: Slow(), Quiet(), detailed=folder is not None))
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
