"""The end of a run: everything it started is ended, and what ended it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from koi_lang.errors import JournalError, KoiError
from koi_lang.js.promises import spawn
from koi_lang.runtime.replay.error_records import origin_of
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services


def failure_of(work: Callable[[Run], Coroutine[Any, Any, None]]) -> BaseException | None:
    """What a run ends with in which something is done."""

    async def carry_out() -> None:
        async with Run(Services(connect=lambda settings: pytest.fail("no model is needed"))) as run:
            await work(run)

    try:
        asyncio.run(carry_out())
    except (KoiError, OSError, asyncio.CancelledError) as error:
        return error
    return None


@pytest.mark.parametrize("waits", [True, False])
def test_what_halts_a_run_is_its_error(waits: bool) -> None:
    """Also when only something in the background halts it, while the run waits for that at its end."""

    async def work(run: Run) -> None:
        async def halt() -> None:
            await asyncio.sleep(0)
            run.halt(JournalError("it takes another way"))

        promise = spawn(halt())
        if waits:
            await promise

    assert str(failure_of(work)) == "it takes another way"


def test_an_end_that_fails_does_not_stop_the_others() -> None:
    """Whatever was to be ended with a run is ended, however many of these fail; the error is still told."""
    ended: list[str] = []

    async def end(name: str) -> None:
        ended.append(name)
        raise PermissionError(name)

    async def work(run: Run) -> None:
        run.keep_until_end(lambda: end("first"))
        run.keep_until_end(lambda: end("second"))

    assert isinstance(failure_of(work), PermissionError)
    assert ended == ["second", "first"]


def test_an_error_that_is_its_own_cause_is_told() -> None:
    """Python code may raise an error from itself; where it was first told is found all the same."""
    error = ValueError("round")
    error.__cause__ = error

    assert origin_of(error) == origin_of(error) == []
