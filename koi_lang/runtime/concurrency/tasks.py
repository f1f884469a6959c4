"""Tasks that end before their parent goes on, with plain errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose first failure is raised itself, instead of in a group of errors.

    A cancellation of the current task that comes while its members fail is not lost: it is raised instead.
    """
    task = asyncio.current_task()
    assert task is not None, "this runs in a task"
    before = task.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            yield group
            # Not left to `__aexit__`: before Python 3.13 that cancels its task to end this wait, and leaves the request
            # standing, so that cancel scopes around take their own cancellation for one of somebody else.
            while group._tasks:
                await asyncio.wait(group._tasks)
    except BaseExceptionGroup as failures:
        if task.cancelling() > before:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # from Python 3.13 on it is delivered here, once more
            raise asyncio.CancelledError from _first(failures)
        raise _first(failures) from None


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time and give their results in order; the first failure ends the others."""
    async with together() as group:
        tasks = [group.create_task(coroutine) for coroutine in work]
    return [task.result() for task in tasks]


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
