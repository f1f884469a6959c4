"""Runs as the API and the pages list them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.summary import RunSummary, summarise
from koi_lang.runtime.journal.totals import UsageTotals


@dataclass(slots=True)
class RunUsage:
    """How far a run is, and what its models took.

    Attributes:
        updated: when its last entry was written, in seconds since the epoch.
        entries: number of that entry.
    """

    updated: float
    entries: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)

    @staticmethod
    def of_summary(summary: RunSummary) -> RunUsage:
        """The usage that a journal tells."""
        return RunUsage(summary.header.started + summary.seconds, summary.entries, summary.totals)

    def add(self, entry: JournalEntry) -> None:
        """Count an entry that was written."""
        self.updated, self.entries = max(self.updated, entry.ts), max(self.entries, entry.n)
        self.totals.add_entry(entry)


@dataclass(frozen=True, slots=True)
class RunListing:
    """A run in a list.

    Attributes:
        program: name of its file, without the ending.
        owner: name of its user; empty where it is no session of the service.
        started: in seconds since the epoch.
        parent: the run that it goes on from as a branch.
        hosted: whether it is a session of the service.
    """

    id: str
    program: str
    owner: str
    state: str
    title: str
    started: float
    usage: RunUsage
    parent: str | None
    hosted: bool

    @staticmethod
    def of_journal(path: Path, state: str = "") -> RunListing:
        """A run that is no session of the service. Raises JournalError.

        Args:
            state: what goes on in it, where its process says so.
        """
        summary = summarise(path)
        header, usage = summary.header, RunUsage.of_summary(summary)
        state = state or ("working" if summary.state == "running" else summary.state)
        parent = header.parent[0] if header.parent else None
        return RunListing(path.stem, Path(header.program).stem, "", state, "", header.started, usage, parent, False)

    def as_data(self) -> dict[str, Any]:
        """The JSON form; `usd` is null where a price is not known."""
        usage, totals = self.usage, self.usage.totals
        return {
            "id": self.id,
            "program": self.program,
            "owner": self.owner,
            "state": self.state,
            "title": self.title,
            "started": self.started,
            "updated": usage.updated,
            "requests": totals.requests,
            "tokens": totals.tokens,
            "usd": None if totals.unpriced else totals.usd,
            "entries": usage.entries,
            "parent": self.parent,
            "hosted": self.hosted,
        }
