"""Agents that send to each other to the CPU time of a send and the time many of them take together."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.measuring import Cost, Figure, repeat
from benchmarks.programs import sending_program
from koi_lang.program import declarations, loader
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

SENDS = 1000


def figures(folder: Path) -> list[Figure]:
    """Sends one after the other, and sends at the same time."""
    path = folder / "sending.koi"
    path.write_text(sending_program(wait_s=1.0), "utf-8")
    module = loader.load(str(path))
    one_by_one = repeat(9, lambda: _cost(module, "oneByOne").cpu_s)
    together = repeat(3, lambda: _cost(module, "together").wall_s)
    return [
        Figure(f"{SENDS:,} sends to a code handler", 0.1, one_by_one, "s"),
        Figure(f"{SENDS:,} sends at a time to a wait of 1 s", 1.3, together, "s"),
    ]


def _cost(module: ModuleType, event: str) -> Cost:
    """What one call of the sender costs."""
    return asyncio.run(_measured(module, event))


async def _measured(module: ModuleType, event: str) -> Cost:
    async with Run(Services(_no_model, teams=lambda: declarations.teams_of(module))) as run:
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        await run.call(module.Sender, event, {"count": SENDS})
        return Cost(time.process_time() - cpu_s, time.perf_counter() - wall_s)


def _no_model(_: Any) -> Any:
    raise AssertionError("code handlers ask no model")
