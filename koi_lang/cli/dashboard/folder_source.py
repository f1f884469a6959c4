"""A dashboard of the runs that are recorded in a folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from koi_lang.cli.dashboard.live_requests import LiveRequests
from koi_lang.cli.dashboard.snapshot import (
    AT_WORK,
    COST_DAYS,
    CostLine,
    DashboardSnapshot,
    OpenRequest,
    RunLine,
    in_order,
)
from koi_lang.errors import JournalError
from koi_lang.runtime.journal.cost_tables import tabulate_costs
from koi_lang.runtime.journal.journal_folder import JournalFolder
from koi_lang.runtime.journal.run_costs import RunCosts, open_costs
from koi_lang.runtime.journal.summary import RunSummary, summarise

MAX_RUNS = 200
PAUSE_S = 1.0
# How often files are looked at whose run had ended: somebody may go on with it.
ALL_S = 10.0
DAY_S = 86_400.0
T = TypeVar("T")


class FolderSource:
    """The journals of a folder, and the sockets of the runs at work in it.

    Most looks are at the journals of runs at work only.
    """

    pause_s = PAUSE_S

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._summaries = JournalFolder(folder, lambda path, _: summarise(path), _is_settled)
        self._costs = open_costs(folder)
        self._stamp, self._looked = -1, 0.0
        self._known: Mapping[str, RunSummary | JournalError] = {}
        self._tables: tuple[tuple[CostLine, ...], tuple[CostLine, ...]] = ((), ())
        self._paid: object = None
        self._group: asyncio.TaskGroup | None = None
        self._live = LiveRequests(folder, lambda: None)

    async def begin(self, group: asyncio.TaskGroup, changed: Callable[[], None]) -> None:
        """Follow the runs at work, so that what they ask waits for an answer."""
        self._group, self._live = group, LiveRequests(self._folder, changed)

    async def look(self) -> DashboardSnapshot:
        """What there is now."""
        self._look_at_files()
        if self._group is None:
            await self._live.look(self._at_work())
        else:
            self._live.follow(self._at_work(), self._group)
        runs = [RunLine.of_summary(run, each, self._state_of(run, each)) for run, each in _sound(self._known).items()]
        unread = sum(isinstance(each, JournalError) for each in self._known.values())
        notes = (f"{unread} of the journals cannot be read; `koi runs list` says why",) if unread else ()
        return DashboardSnapshot(str(self._folder), in_order(runs, MAX_RUNS), self._live.requests, *self._tables, notes)

    def _look_at_files(self) -> None:
        stamp, now = self._summaries.stamp(), time.monotonic()
        if stamp != self._stamp or now - self._looked > ALL_S:
            self._stamp, self._looked = stamp, now
            self._known = self._summaries.look()
            self._tabulate(self._costs.look(time.time() - COST_DAYS * DAY_S))
            return
        if at_work := self._at_work():
            self._known = self._summaries.look_again(at_work)
            self._tabulate(self._costs.look_again(at_work))

    def _tabulate(self, costs: Mapping[str, RunCosts | JournalError]) -> None:
        """Add up what was paid, where that is more than before."""
        found, since = list(_sound(costs).values()), time.time() - COST_DAYS * DAY_S
        paid = (int(since // 3600), [(each.run, len(each.payments)) for each in found])
        if paid != self._paid:
            self._paid = paid
            days, models = (CostLine.of_table(tabulate_costs(found, by, since=since)) for by in ("day", "model"))
            self._tables = (days, models)

    def _at_work(self) -> list[str]:
        return [run for run, each in _sound(self._known).items() if not _is_settled(each)]

    def _state_of(self, run: str, summary: RunSummary) -> str:
        """The state of a run; of one at work what it says itself, where it says that something goes on."""
        live = "" if _is_settled(summary) else self._live.state_of(run)
        return live if live in AT_WORK else summary.state

    async def answer(self, request: OpenRequest, text: str) -> None:
        """Answer a question. Raises KoiError."""
        await self._live.answer(request, "answer", answer=text)

    async def approve(self, request: OpenRequest, decision: str, reason: str) -> None:
        """Allow something, or not. Raises KoiError."""
        why = {"reason": reason} if reason else {}
        await self._live.answer(request, "approve", decision=decision, **why)

    async def close(self) -> None:
        """Follow nothing any more."""
        self._live.close()


def _is_settled(summary: RunSummary) -> bool:
    """Whether what came of a run stays so while its journal does."""
    return not summary.is_running


def _sound(summaries: Mapping[str, T | JournalError]) -> dict[str, T]:
    """What could be read."""
    return {run: each for run, each in summaries.items() if not isinstance(each, JournalError)}
