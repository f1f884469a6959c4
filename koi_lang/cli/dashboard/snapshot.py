"""What a dashboard shows at a moment, wherever it comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from koi_lang.runtime.journal.cost_tables import CostTable
from koi_lang.runtime.journal.summary import RunSummary

# Of a service these states mean that something goes on, or waits for somebody.
AT_WORK = ("running", "working", "waiting", "paused")
APPROVAL = "approval_request"
# How far back costs are shown.
COST_DAYS = 30


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run.

    Attributes:
        started: seconds since the epoch.
        usd: None where nothing is known of it.
    """

    run: str
    program: str
    state: str
    started: float
    seconds: float
    requests: int
    tokens: int
    usd: float | None
    owner: str = ""

    @property
    def is_at_work(self) -> bool:
        """Whether something goes on in it."""
        return self.state in AT_WORK

    @staticmethod
    def of_summary(run: str, summary: RunSummary, state: str) -> RunLine:
        """The run of a journal."""
        header, totals = summary.header, summary.totals
        usd = None if totals.unpriced and not totals.usd else totals.usd
        about = (header.started, summary.seconds, totals.requests, totals.tokens, usd)
        return RunLine(run, Path(header.program).name, state, *about)

    @staticmethod
    def of_service(fields: Mapping[str, Any]) -> RunLine:
        """A run as a service describes it."""
        started, updated = (_number(fields.get(name)) for name in ("started", "updated"))
        usd = fields.get("usd")
        return RunLine(
            str(fields.get("id", "")),
            str(fields.get("title") or fields.get("program") or ""),
            str(fields.get("state", "")),
            started,
            max(0.0, updated - started),
            int(_number(fields.get("requests"))),
            int(_number(fields.get("tokens"))),
            float(usd) if isinstance(usd, int | float) else None,
            str(fields.get("owner") or ""),
        )


@dataclass(frozen=True, slots=True)
class CostLine:
    """What was paid on a day, or to a model; `usd` is None where nothing is known of it."""

    name: str
    usd: float | None
    is_all: bool
    requests: int
    tokens: int

    @staticmethod
    def of_table(table: CostTable) -> tuple[CostLine, ...]:
        """The groups of a table."""
        return CostLine.of_data(table.as_data())

    @staticmethod
    def of_data(data: Any) -> tuple[CostLine, ...]:
        """The groups of a table in its JSON form; what does not look like it is left out."""
        groups, by = (data.get("groups", []), str(data.get("by", ""))) if isinstance(data, dict) else ([], "")
        return tuple(_cost_line(str(group.get(by, "")), group) for group in groups if isinstance(group, dict))


def _cost_line(name: str, group: Mapping[str, Any]) -> CostLine:
    usd, counts = group.get("usd"), (int(_number(group.get(field))) for field in ("requests", "tokens"))
    return CostLine(name, float(usd) if isinstance(usd, int | float) else None, not group.get("unpriced"), *counts)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A question, or a request for approval, that nobody has answered yet; `message` is as clients are told of it."""

    run: str
    message: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id within its run."""
        return str(self.message.get("id", ""))

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.run, self.id

    @property
    def is_approval(self) -> bool:
        """Whether something is to be allowed."""
        return self.message.get("type") == APPROVAL


@dataclass(frozen=True, slots=True)
class DashboardSnapshot:
    """What there is at a moment.

    Attributes:
        place: the folder, or the address of the service.
        runs: those at work first, each part with the latest first.
        days: costs by day, the latest last.
        models: costs by model, the dearest first.
        notes: what could not be found out.
    """

    place: str
    runs: tuple[RunLine, ...] = ()
    open: tuple[OpenRequest, ...] = ()
    days: tuple[CostLine, ...] = ()
    models: tuple[CostLine, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def at_work(self) -> tuple[RunLine, ...]:
        """The runs in which something goes on."""
        return tuple(run for run in self.runs if run.is_at_work)

    @property
    def recent(self) -> tuple[RunLine, ...]:
        """All others."""
        return tuple(run for run in self.runs if not run.is_at_work)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "place": self.place,
            "at_work": [_run_data(run) for run in self.at_work],
            "recent": [_run_data(run) for run in self.recent],
            "open": [{"run": request.run, **request.message} for request in self.open],
            "costs": {"day": _cost_data("day", self.days), "model": _cost_data("model", self.models)},
            "notes": list(self.notes),
        }


def in_order(runs: Iterable[RunLine], most: int) -> tuple[RunLine, ...]:
    """Those at work, and of the others the latest ones."""
    latest = sorted(runs, key=lambda run: (-run.started, run.run))
    others = [run for run in latest if not run.is_at_work][:most]
    return (*(run for run in latest if run.is_at_work), *others)


def _run_data(run: RunLine) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__slots__}


def _cost_data(by: str, lines: Sequence[CostLine]) -> list[dict[str, Any]]:
    return [
        {by: line.name, "requests": line.requests, "tokens": line.tokens, "usd": line.usd, "unpriced": not line.is_all}
        for line in lines
    ]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


class DashboardSource(Protocol):
    """Where a dashboard looks; `pause_s` says how often."""

    pause_s: float

    async def begin(self, group: asyncio.TaskGroup, changed: Callable[[], None]) -> None:
        """Follow what goes on, in tasks of a group; `changed` is called when there is something new."""

    async def look(self) -> DashboardSnapshot:
        """What there is now. Raises KoiError."""

    async def answer(self, request: OpenRequest, text: str) -> None:
        """Answer a question. Raises KoiError where it is not open any more."""

    async def approve(self, request: OpenRequest, decision: str, reason: str) -> None:
        """Allow something, or not. Raises KoiError where it is not open any more."""

    async def close(self) -> None:
        """Follow nothing any more."""
