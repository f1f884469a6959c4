"""A dashboard of what a service does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from koi_lang.cli.dashboard.snapshot import CostLine, DashboardSnapshot, OpenRequest, RunLine, in_order
from koi_lang.client import AsyncClient, RefusedError

# One page: the service looks at the journal of each.
MAX_RUNS = 50
PAUSE_S = 2.0


class ServiceSource:
    """A service that is asked again and again, as little as possible.

    Args:
        url: of the service.
        token: of the user.
    """

    pause_s = PAUSE_S

    def __init__(self, url: str, token: str | None) -> None:
        self._client = AsyncClient(url, token)
        self._open: dict[str, tuple[Any, tuple[OpenRequest, ...]]] = {}
        self._costs: dict[str, tuple[CostLine, ...]] = {}
        self._costs_of: Any = None

    async def begin(self, group: asyncio.TaskGroup, changed: Callable[[], None]) -> None:
        """Nothing: what has changed is asked for."""

    async def look(self) -> DashboardSnapshot:
        """What there is now. Raises RemoteError."""
        listed = [run async for run in self._client.runs(limit=MAX_RUNS)]
        runs = [RunLine.of_service(run) for run in listed]
        open_ = await asyncio.gather(*(self._requests_of(run) for run in listed if run.get("state") == "waiting"))
        state = [(run.run, run.requests, run.tokens) for run in runs]
        notes = () if state == self._costs_of else await self._look_at_costs()
        self._costs_of = None if notes else state
        place, requests = str(self._client.service.address), tuple(each for requests in open_ for each in requests)
        days, models = (self._costs.get(by, ()) for by in ("day", "model"))
        return DashboardSnapshot(place, in_order(runs, MAX_RUNS), requests, days, models, notes)

    async def _requests_of(self, run: dict[str, Any]) -> tuple[OpenRequest, ...]:
        """What a run waits for."""
        id = str(run.get("id", ""))
        try:
            response = await self._client.run(id).describe()
        except RefusedError:  # it is gone
            return ()
        return tuple(OpenRequest(id, each) for each in response.get("open", ()) if isinstance(each, dict))

    async def _look_at_costs(self) -> tuple[str, ...]:
        """Costs, as far as the service tells them; gives what is to be said where it does not."""
        try:
            for by in ("day", "model"):
                self._costs[by] = CostLine.of_data(await self._client.costs(by))
        except RefusedError as error:
            return (f"costs are not told: {error.message}",)
        return ()

    async def answer(self, request: OpenRequest, text: str) -> None:
        """Answer a question. Raises RemoteError."""
        await self._client.run(request.run).answer(request.id, text)

    async def approve(self, request: OpenRequest, decision: str, reason: str) -> None:
        """Allow something, or not. Raises RemoteError."""
        await self._client.run(request.run).approve(request.id, decision, reason)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
