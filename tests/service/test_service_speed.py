"""A small measure of what the benchmark of services promises, with bounds that hold on a machine that is busy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import pytest

from benchmarks.services import ServiceSize, measure


@pytest.mark.thorough
def test_a_service_is_fast(tmp_path: Path) -> None:
    """Runs begin, are heard and wake within ten times of what is promised; sessions that sleep take next to nothing."""
    times = asyncio.run(measure(tmp_path, ServiceSize(begun=5, together=10, asleep=10, entries=50)))

    assert median(times.accepted) < 0.5
    assert median(times.first) < 1.0
    assert median(times.told) < 1.5
    assert times.wake < 5.0
    assert times.asleep_mb < 20.0
    assert times.page < 5.0
