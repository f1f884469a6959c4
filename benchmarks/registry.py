"""Registry entries to the CPU time of writing and reading them, and how it grows with their number."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Figure, repeat
from koi_lang.runtime.registry import Registry, open_registry

SMALL, LARGE = 1_000, 4_000


def figures(folder: Path) -> list[Figure]:
    """Time and growth."""
    pairs = repeat(5, lambda: (_cpu_s(folder, SMALL), _cpu_s(folder, LARGE)))
    return [
        Figure(f"{SMALL:,} registry writes and {SMALL:,} reads", 0.4, [one for one, _ in pairs], "s"),
        Figure(f"growth from {SMALL:,} to {LARGE:,} of each", 4.8, [many / one for one, many in pairs], "×"),
    ]


def _cpu_s(folder: Path, count: int) -> float:
    """CPU seconds of one run on an empty folder, opening and closing included."""
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        start_s = time.process_time()
        registry = open_registry(Path(empty), None)
        asyncio.run(_write_and_read(registry, count))
        registry.close()
        return time.process_time() - start_s


async def _write_and_read(registry: Registry, count: int) -> None:
    for number in range(count):
        await registry.set(f"user:{number}", {"name": f"user {number}", "age": number % 90, "tags": ["a", "b"]})
    for number in range(count):
        found = await registry.get(f"user:{number}")
        if found["age"] != number % 90:
            raise AssertionError(f"wrong value for user:{number}")
