"""CPU time of registry writes and reads, and how it grows with their number: `python benchmarks/registry.py`."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from koi_lang.runtime.registry import Registry, open_registry

RUNS = 5
SMALL, LARGE = 1_000, 4_000


async def write_and_read(registry: Registry, count: int) -> None:
    """Set `count` keys, then get each of them."""
    for number in range(count):
        await registry.set(f"user:{number}", {"name": f"user {number}", "age": number % 90, "tags": ["a", "b"]})
    for number in range(count):
        found = await registry.get(f"user:{number}")
        if found["age"] != number % 90:
            raise AssertionError(f"wrong value for user:{number}")


def measure_cpu_s(count: int) -> float:
    """CPU seconds of one run on an empty folder, opening and closing included."""
    with tempfile.TemporaryDirectory() as folder:
        start_s = time.process_time()
        registry = open_registry(Path(folder), None)
        asyncio.run(write_and_read(registry, count))
        registry.close()
        return time.process_time() - start_s


def main() -> None:
    """Print the medians and their ratio."""
    medians_s = {count: statistics.median(measure_cpu_s(count) for _ in range(RUNS)) for count in (SMALL, LARGE)}
    for count, median_s in medians_s.items():
        print(f"{count:5} writes and {count:5} reads  {median_s:.3f} s CPU (median of {RUNS})")
    print(f"ratio {medians_s[LARGE] / medians_s[SMALL]:.2f} for {LARGE // SMALL} times the entries")


if __name__ == "__main__":
    main()
