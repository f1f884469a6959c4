"""What was paid for the runs of a service, kept from request to request."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.requests import Request

from koi_lang.runtime.journal.run_costs import RunCosts, open_costs
from koi_lang.web.request_context import host_of


class CostBook:
    """What was paid for the runs of a folder; of a journal only what is new is read."""

    def __init__(self, folder: Path) -> None:
        self._journals, self._turn = open_costs(folder), asyncio.Lock()

    async def look(self) -> list[RunCosts]:
        """What was paid for each run; journals that cannot be read are left out."""
        async with self._turn:
            told = await asyncio.to_thread(self._journals.look)
        return [costs for costs in told.values() if isinstance(costs, RunCosts)]


def cost_book_of(request: Request) -> CostBook:
    """The costs of the service's folder."""
    state = request.app.state
    if not hasattr(state, "cost_book"):
        state.cost_book = CostBook(host_of(request).folder)
    book: CostBook = state.cost_book
    return book
