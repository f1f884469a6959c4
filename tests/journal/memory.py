"""Runs kept in the memory of a process: what a journal has to do, without files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from koi_lang.errors import JournalError
from koi_lang.events import Event
from koi_lang.runtime.journal.entries import Header, JournalEntry, entry_in, entry_of, line_of
from koi_lang.runtime.journal.reader import End


@dataclass(slots=True)
class RunInMemory:
    """What is kept of one run; `fails` has it take nothing more."""

    header: Header
    entries: list[JournalEntry] = field(default_factory=list)
    is_held: bool = True
    settled: int = 0
    fails: bool = False

    @property
    def end(self) -> End:
        """Where it goes on."""
        return End(self.header.run, len(self.entries))


@dataclass(frozen=True, slots=True)
class JournalInMemory:
    """The journal of a run that is held."""

    run: RunInMemory
    is_copy: bool

    def __call__(self, event: Event) -> None:
        """Append an event, as it can be read again."""
        if event.recalled and not self.is_copy:
            return
        if self.run.fails:
            if event.fields.get("unsafe"):
                raise asyncio.CancelledError
            return
        entry = entry_in(line_of(entry_of(event, len(self.run.entries) + 1), str))
        assert entry is not None, "what was written can be read"
        self.run.entries.append(entry)
        if entry.data.get("lasting"):
            self.settle()

    def settle(self) -> None:
        """There is nothing to wait for."""
        self.run.settled = len(self.run.entries)

    def close(self) -> None:
        """Let others go on with it."""
        self.run.is_held = False


class RunsInMemory:
    """All of them, by their ids."""

    def __init__(self) -> None:
        self._runs: dict[str, RunInMemory] = {}

    def __iter__(self) -> Iterator[RunInMemory]:
        return iter(self._runs.values())

    def create(self, header: Header) -> JournalInMemory:
        """Begin one."""
        if header.run in self._runs:
            raise JournalError(f"there is a run `{header.run}`")
        run = self._runs[header.run] = RunInMemory(header)
        return JournalInMemory(run, is_copy=True)

    def open(self, end: End) -> JournalInMemory:
        """Go on with one."""
        run = self.read(end.run)
        if run.is_held or end.count != len(run.entries):
            raise JournalError(f"the run `{end.run}` goes on, or has gone on")
        run.is_held = True
        return JournalInMemory(run, is_copy=False)

    def read(self, run: str) -> RunInMemory:
        """One of them."""
        if run not in self._runs:
            raise JournalError(f"there is no run `{run}`")
        return self._runs[run]
