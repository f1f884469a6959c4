"""Small programs to the CPU time they take against the same programs in plain Python, within one process."""

from __future__ import annotations

import asyncio
import gc
import importlib
import statistics
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.measuring import Figure, repeat
from koi_lang.program import declarations, loader
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

PROGRAMS = Path(__file__).parent / "small"
# How much each program has to do, so that plain Python takes about 20 ms.
SIZES = {
    "arithmetic": 200_000,
    "matrix": 60,
    "sieve": 200_000,
    "texts": 80_000,
    "words": 6_000,
    "sorting": 6_000,
    "recursion": 20,
    "methods": 20_000,
    "closures": 50_000,
    "scanning": 5_000,
}
MAX_RATIO, MAX_MIDDLE_RATIO = 6.0, 3.0


def figures(folder: Path) -> list[Figure]:
    """A ratio for each program, and that of their middle."""
    measured = {name: _ratios(name, size) for name, size in SIZES.items()}
    middles = [statistics.median(rounds) for rounds in zip(*measured.values(), strict=True)]
    each = [Figure(f"{name} against plain Python", MAX_RATIO, ratios, "×") for name, ratios in measured.items()]
    return [*each, Figure("the middle of ten small programs", MAX_MIDDLE_RATIO, middles, "×")]


def _ratios(name: str, size: int) -> list[float]:
    """CPU time of the Koi program against that of the Python program, which must come to the same."""
    koi = loader.load(str(PROGRAMS / f"{name}.koi"))
    python = importlib.import_module(f"benchmarks.small.{name}")
    return repeat(5, lambda: _ratio(koi, python, size))


def _ratio(koi: ModuleType, python: ModuleType, size: int) -> float:
    gc.collect()
    koi_s, result = asyncio.run(_run(koi, size))
    gc.collect()
    begin_s = time.process_time()
    expected = python.start(size)
    python_s = time.process_time() - begin_s
    if result != expected:
        raise AssertionError(f"{koi.__name__} gives {result!r}, not {expected!r}")
    return koi_s / python_s


async def _run(koi: ModuleType, size: int) -> tuple[float, Any]:
    async with Run(Services(_no_model, teams=lambda: declarations.teams_of(koi))) as run:
        begin_s = time.process_time()
        result = await run.call(koi.Main, "start", {"n": size})
        return time.process_time() - begin_s, result


def _no_model(_: Any) -> Any:
    raise AssertionError("code handlers ask no model")
