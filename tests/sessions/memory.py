"""Calls kept in the memory of a process: what a `CallsPort` has to do, without runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from koi_lang.errors import CallCancelledError, UsageError
from koi_lang.runtime.budget.limits import Budget, LimitReachedError


@dataclass(slots=True)
class CallInMemory:
    """One call: what it asks for, what carries it out, and how many wait for it."""

    wanted: Any
    task: asyncio.Task[Any]
    waiting: int = 0

    async def end(self) -> None:
        """End it, and wait for that."""
        self.task.cancel()
        await asyncio.wait([self.task])


class CallsInMemory:
    """All of them, by their ids."""

    def __init__(self, handle: Callable[[str, Any], Awaitable[Any]], group: asyncio.TaskGroup) -> None:
        self._handle, self._group = handle, group
        self._calls: dict[str, CallInMemory] = {}

    async def call(self, id: str, agent: type[Any], event: str, payload: Any, budget: Budget) -> Any:
        """What comes of an event."""
        if not id:
            raise UsageError("a call needs an id")
        wanted = (agent, event, deepcopy(payload))
        if id not in self._calls:
            task = self._group.create_task(self._carry_out(event, deepcopy(payload), budget))
            self._calls[id] = CallInMemory(wanted, task)
        call = self._calls[id]
        if call.wanted != wanted:
            raise UsageError(f"the id `{id}` is that of another call")
        call.waiting += 1
        try:
            await asyncio.wait([call.task])
        finally:
            call.waiting -= 1
            if not call.task.done() and not call.waiting:
                await call.end()
        if call.task.cancelled():
            raise CallCancelledError("the call was cancelled")
        value = call.task.result()
        if isinstance(value, Exception):
            raise value
        return deepcopy(value)

    async def _carry_out(self, event: str, payload: Any, budget: Budget) -> Any:
        """What comes of an event, or its error."""
        try:
            async with asyncio.timeout(budget.time_s):
                return await self._handle(event, payload)
        except TimeoutError:
            return LimitReachedError("time", event, "took too long", "")
        except Exception as error:
            return error

    async def cancel(self, id: str) -> bool:
        """End one of them."""
        call = self._calls.get(id)
        if call is None or call.task.done():
            return False
        await call.end()
        return True
