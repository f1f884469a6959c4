"""A small measure of what the benchmark of services promises, with bounds that hold on a machine that is busy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import pytest

from benchmarks import load


@pytest.mark.thorough
def test_a_session_wakes_soon(tmp_path: Path) -> None:
    """Sessions wake within five times of what is promised, and those that sleep take next to nothing."""
    times = asyncio.run(load.measure_sleep(tmp_path / "service", load.LoadSize(asleep=10, entries=50)))

    assert times.wake < 5.0
    assert times.asleep_mb < 20.0
    assert times.page < 5.0


@pytest.mark.thorough
def test_nobody_waits_long_beside_many_chats(tmp_path: Path) -> None:
    """All of 200 chats at once with a model of 0.3 s end well, and others wait for a second of its CPU at most."""
    size = load.LoadSize(begun=4, messages=1, followed=2, rounds=1)
    costs = asyncio.run(load.measure(tmp_path, size))["koi"]

    assert [size.chats] == costs.chats_ended
    assert costs.longest_wait_cpu < 1.0


@pytest.mark.thorough
def test_many_conversations_leave_little_behind(tmp_path: Path) -> None:
    """All of 1,500 conversations are answered with 1,024 open files; neither files nor memory go on growing."""
    outcome = asyncio.run(load.converse(tmp_path / "service", load.CONVERSATIONS))
    files = [each.files for each in outcome.samples]

    assert load.CONVERSATIONS == outcome.statuses[202]
    assert max(files) < load.MAX_FILES * 0.9
    assert files[-1] <= max(files[: len(files) // 2]) + load.AT_ONCE * 2
    assert outcome.grown_kb() < 60


@pytest.mark.thorough
def test_a_service_costs_little_beside_a_plain_one(tmp_path: Path) -> None:
    """All chats at once end well, runs begin and are heard soon, and each cost is within five times of its aim."""
    costs = asyncio.run(load.measure(tmp_path, load.LoadSize(begun=10, messages=200, followed=10, chats=20)))
    floor, koi = costs["floor"], costs["koi"]

    assert {20} == {*floor.chats_ended, *koi.chats_ended}
    assert median(koi.accepted) < 10 * median(floor.accepted)
    assert median(load.ratios(koi.chat_cpu, floor.chat_cpu)) < 9
    assert median(koi.accepted) < 0.5
    assert median(koi.first) < 1.0
    assert median(koi.late) < 1.5
