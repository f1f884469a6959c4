"""Calls and programs that are ended: nothing of them goes on, and the journal is closed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import koi_lang
from koi_lang.runtime.journal import store
from tests.limits import LIMIT_S

pytestmark = pytest.mark.anyio


def last_of(journal: Path | None) -> str:
    """The type of the last entry of a journal that nobody writes any more."""
    assert journal is not None
    assert not store.is_running(journal)
    kinds = [json.loads(line).get("kind") for line in journal.read_text().splitlines()]
    return str([kind for kind in kinds if kind][-1])


class Printed(list[str]):
    """What a program has printed."""

    async def until(self, *expected: str) -> None:
        """Wait until it has printed some lines and no others."""
        async with asyncio.timeout(LIMIT_S):
            while self != list(expected):  # noqa: ASYNC110  (nothing else tells it)
                await asyncio.sleep(0.001)


async def test_a_cancelled_call_is_ended(desk: Path) -> None:
    """A timeout of the caller ends the call before it is told; the program goes on."""
    printed = Printed()
    limit = asyncio.timeout(None)

    def output(line: str) -> None:
        printed.append(line)
        if line == "begun":
            limit.reschedule(asyncio.get_running_loop().time())

    async with koi_lang.open(desk, output=output) as program:
        editor = program.agent("Editor")
        with pytest.raises(TimeoutError):
            async with limit:
                await editor.slow({})

        assert (["begun", "cleaned up"], 1) == (printed, await editor.count())


async def test_a_stream_that_is_left_ends_its_call(desk: Path) -> None:
    """Breaking out of the loop ends what it was about, without more."""
    printed = Printed()
    async with koi_lang.open(desk, output=printed.append) as program:
        async for event in program.agent("Editor").stream("slow", {}):
            if event.type == "printed":
                break
        await printed.until("begun", "cleaned up")


async def test_a_stream_is_closed(desk: Path) -> None:
    """`aclose` waits until nothing of the call is under way, and no event follows."""
    printed: list[str] = []
    async with koi_lang.open(desk, output=printed.append) as program:
        stream = program.agent("Editor").stream("slow", {})
        await anext(stream)
        await stream.aclose()

        assert (["begun", "cleaned up"], []) == (printed, [event async for event in stream])


async def test_a_program_that_is_left_ends_its_calls(desk: Path) -> None:
    """What is under way when the context ends is ended, its caller is told, and the journal has its end."""
    printed = Printed()
    async with koi_lang.open(desk, output=printed.append) as program:
        call = asyncio.create_task(program.agent("Editor").call("slow", {}))
        await printed.until("begun")
    with pytest.raises(koi_lang.KoiError, match="the program was closed before the call had ended"):
        await call

    assert (["begun", "cleaned up"], "run_ended") == (printed, last_of(program.journal))


async def test_an_error_of_the_caller_ends_the_program(desk: Path) -> None:
    """An exception inside of the context comes out as it is, and the journal has its end."""
    program = koi_lang.open(desk)
    with pytest.raises(LookupError, match="mine"):
        async with program:
            raise LookupError("mine")

    assert "run_ended" == last_of(program.journal)


async def test_a_cancelled_caller_ends_the_program(desk: Path) -> None:
    """Cancelling the task that has opened a program ends what it waits for."""
    printed = Printed()
    program = koi_lang.open(desk, output=printed.append)

    async def work() -> None:
        async with program:
            await program.agent("Editor").slow({})

    task = asyncio.create_task(work())
    await printed.until("begun")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (["begun", "cleaned up"], "run_ended") == (printed, last_of(program.journal))


async def test_nothing_is_called_before_and_after(desk: Path) -> None:
    """A program that is not open says where its agents can be called."""
    program = koi_lang.open(desk)
    with pytest.raises(koi_lang.UsageError, match="not open yet"):
        await program.agent("Editor").count()
    async with program:
        pass
    with pytest.raises(koi_lang.KoiError, match="the program is not open"):
        await program.agent("Editor").count()
    with pytest.raises(koi_lang.UsageError, match="entered once"):
        await program.__aenter__()
