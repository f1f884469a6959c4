"""The event loop of tests: its time passes when everything sleeps, and only then."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from typing import Any

from koi_lang.testing.loops import JumpingLoop


def run(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """What a coroutine gives on a new loop, and the seconds that the loop has seen."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work), runner.get_loop().time()


def test_an_hour_passes_at_once() -> None:
    """Sleeping takes the time of the loop and next to none of the machine."""
    began = time.monotonic()

    _, seconds = run(asyncio.sleep(3600))

    assert seconds == 3600
    assert time.monotonic() - began < 3600


def test_sleepers_wake_in_their_order() -> None:
    """Of several tasks, the one that sleeps shortest goes on first, and time does not pass twice."""
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(asyncio.get_running_loop().time())

    async def main() -> None:
        await asyncio.gather(sleep(30), sleep(10), sleep(20))

    _, seconds = run(main())

    assert ([10, 20, 30], 30) == (woken, seconds)


def test_threads_are_waited_for() -> None:
    """Work in a thread ends before a timeout that is longer than it takes."""

    async def main() -> str:
        async with asyncio.timeout(20):
            return await asyncio.to_thread(lambda: time.sleep(0.02) or "done")

    assert run(main())[0] == "done"


def test_files_are_waited_for() -> None:
    """What comes through a pipe from outside of the loop arrives before a timeout of seconds."""

    async def main() -> bytes:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", "sleep 0.02; echo done", stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(20):
            found, _ = await process.communicate()
        return found

    assert run(main())[0] == b"done\n"


def test_a_loop_without_a_future_says_so() -> None:
    """When nothing can ever happen any more, somebody is told."""

    async def main() -> str:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert isinstance(loop, JumpingLoop)
        assert task is not None
        loop.when_stalled(task.cancel)
        try:
            await loop.create_future()
        except asyncio.CancelledError:
            task.uncancel()
            return "stalled"
        return "went on"

    assert run(main())[0] == "stalled"


def test_a_reader_keeps_the_time() -> None:
    """While a file is read from, time is that of the machine."""
    readable, writable = os.pipe()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(readable, print)
        await asyncio.sleep(0.02)
        loop.remove_reader(readable)

    begin = time.monotonic()
    run(main())
    os.close(readable)
    os.close(writable)

    assert time.monotonic() - begin >= 0.02
