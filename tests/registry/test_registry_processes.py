"""Several processes on one registry, and processes that are killed while they write."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import koi_lang
from koi_lang.runtime.registry import open_registry

WRITER = """
import asyncio, sys
from pathlib import Path
from koi_lang.runtime.registry import open_registry

async def write(name, count):
    registry = open_registry(Path.cwd(), None)
    for number in range(count):
        await registry.set(f"{name}:{number}", {"number": number, "filler": "x" * (number % 7 * 300)})
        print(number, flush=True)

asyncio.run(write(sys.argv[1], int(sys.argv[2])))
"""


def start_writer(folder, name, count):
    """Start a process that sets `count` keys and prints the number of each when it has been acknowledged."""
    command = [sys.executable, "-c", WRITER, name, str(count)]
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parent.parent)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def read_numbers(folder, name):
    """The numbers that a writer has left in the registry."""
    with closing(open_registry(folder, None)) as registry:
        entries = asyncio.run(registry.search({"number": {"$gte": 0}}))
    return [entry["value"]["number"] for entry in entries if entry["key"].startswith(f"{name}:")]


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    """Each entry of three processes that start together on an empty folder is there in the end."""
    (tmp_path / ".koi" / "registry").mkdir(parents=True)
    (tmp_path / ".koi" / "registry" / "data.json").write_text('{"old:0": {"number": 0}}')
    writers = {name: start_writer(tmp_path, name, 300) for name in "abc"}
    errors = [writer.communicate()[1] for writer in writers.values()]

    found = {name: read_numbers(tmp_path, name) for name in ("a", "b", "c", "old")}

    expected = list(range(300))
    assert (["", "", ""], {"a": expected, "b": expected, "c": expected, "old": [0]}) == (errors, found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(10))
def test_a_killed_writer_loses_no_acknowledged_entry(tmp_path, seed):
    """After SIGKILL in a write loop the entries are the acknowledged ones and at most the one under way."""
    with start_writer(tmp_path, "k", 100_000) as writer:
        stop = random.Random(seed).randrange(1, 400)
        acknowledged = [int(writer.stdout.readline()) for _ in range(stop)]
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]

    found = read_numbers(tmp_path, "k")

    assert found in (acknowledged, [*acknowledged, len(acknowledged)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("delay_ms", range(40, 140, 20))
def test_a_kill_while_data_json_is_taken_over_loses_nothing(tmp_path, delay_ms):
    """A process killed around its first use leaves either no import or a whole one for the next process."""
    (tmp_path / ".koi" / "registry").mkdir(parents=True)
    rows = ", ".join(f'"old:{number}": {{"number": {number}}}' for number in range(3000))
    (tmp_path / ".koi" / "registry" / "data.json").write_text(f"{{{rows}}}")
    with start_writer(tmp_path, "k", 100_000) as writer:
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(delay_ms / 1000)
        writer.kill()

    assert read_numbers(tmp_path, "old") == list(range(3000))
