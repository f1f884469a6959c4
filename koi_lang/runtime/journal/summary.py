"""The summary of a run, from its journal: end, duration, usage of models.

The first line and the last ones tell all of it, since every now and then a line holds the totals so far; only journals
that hold none, of older versions, are read as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from koi_lang.events import PAID, CallEnded, CallStarted, RunEnded, RunStarted
from koi_lang.runtime.journal.calls import is_session
from koi_lang.runtime.journal.entries import LAST_CALL, TOTALS, Header, JournalEntry, entry_in, header_of
from koi_lang.runtime.journal.history import RESUMED
from koi_lang.runtime.journal.line_ends import is_changed
from koi_lang.runtime.journal.reader import KIND, KIND_WITHIN, MAX_HEADER_BYTES, open_journal
from koi_lang.runtime.journal.store import is_running
from koi_lang.runtime.journal.totals import AT_REST, CallEnd, RunUsage, UsageTotals

State = Literal["ok", "failed", "interrupted", "running"]
# Of runs that can go on.
UNFINISHED = ("interrupted", "failed")
# What is read of the end first.
END_BYTES = 1 << 12
# What a line with totals holds.
MARK = f'"{TOTALS}":{{'.encode()
TELLING = frozenset(
    kind.encode() for kind in (RunEnded.type, RunStarted.type, CallStarted.type, CallEnded.type, RESUMED, *PAID)
)


@dataclass(slots=True)
class RunSummary:
    """The summary of a run.

    Attributes:
        end: how it ended, or that it goes on.
        seconds: from its start to its last entry; to that of its last work, where it is a session.
        totals: what its models took.
        entries: number of its last entry.
        last_call: the end of the call that was begun last; None where it goes on, or there is none.
    """

    header: Header
    end: State = "interrupted"
    seconds: float = 0.0
    totals: UsageTotals = field(default_factory=UsageTotals)
    entries: int = 0
    last_call: CallEnd | None = None

    @property
    def state(self) -> State:
        """How it ended, or that it goes on; a session whose last call failed has failed."""
        is_failure = self.last_call is not None and self.last_call.is_failure and is_session(self.header)
        return "failed" if is_failure else self.end

    @property
    def usage(self) -> RunUsage:
        """Its position and its usage."""
        return RunUsage(self.header.started + self.seconds, self.entries, self.totals, self.last_call)

    @property
    def is_running(self) -> bool:
        """Whether a process works on it, also where its last call failed."""
        return self.end == "running"

    def as_data(self, run: str) -> dict[str, Any]:
        """The JSON form; `usd` is null where prices are not known.

        Args:
            run: the id, by which its journal is called.
        """
        parent, entry = self.header.parent or (None, None)
        return {
            "run": run,
            "started": self.header.started,
            "program": self.header.program,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "requests": self.totals.requests,
            "tokens": self.totals.tokens,
            "usd": None if self.totals.unpriced else self.totals.usd,
            "parent": parent,
            "entry": entry,
        }

    def add(self, entry: JournalEntry) -> None:
        """Count an entry."""
        if entry.kind not in AT_REST or not is_session(self.header):
            self.seconds = max(self.seconds, entry.ts - self.header.started)
        self.entries = max(self.entries, entry.n)
        totals = UsageTotals.of_data(entry.data.get(TOTALS))
        if totals is None:
            self.totals.add_entry(entry)
        else:
            self.totals = totals
            known = entry.data.get(LAST_CALL)
            self.last_call = CallEnd(**known) if isinstance(known, dict) else self.last_call
        self.last_call = CallEnd.after(entry, self.last_call)
        if entry.kind == RunEnded.type:
            self.end = "ok" if entry.data.get("ok") else "interrupted" if entry.data.get("interrupted") else "failed"
        elif entry.kind in (RunStarted.type, RESUMED):
            self.end = "interrupted"


def summarise(path: Path) -> RunSummary:
    """The summary of the run of a journal. Raises JournalError."""
    size, summary = _read(path)
    if summary.end != "interrupted":
        return summary
    # Asked before it is read once more: a run that has ended meanwhile is then not taken for one that was interrupted.
    running = is_running(path)
    if _size(path) != size:
        _, summary = _read(path)
    if running and summary.end == "interrupted":
        summary.end = "running"
    return summary


def _size(path: Path) -> int:
    with open_journal(path) as file:
        return file.seek(0, os.SEEK_END)


def _read(path: Path) -> tuple[int, RunSummary]:
    """The size of a journal in bytes, and its summary."""
    with open_journal(path) as file:
        summary = RunSummary(header_of(file.readline(MAX_HEADER_BYTES), path.name))
        begin, run = file.tell(), summary.header.run
        size = file.seek(0, os.SEEK_END)
        last = _last_entries(file, begin, size, summary.header)
        for entry in last or _telling_entries(_lines_from(file, begin, size), run):
            summary.add(entry)
    return size, summary


def _lines_from(file: BinaryIO, start: int, end: int) -> list[bytes]:
    file.seek(start)
    return file.read(end - start).splitlines(keepends=True)


def _last_entries(file: BinaryIO, begin: int, size: int, header: Header) -> list[JournalEntry]:
    """The last entry that holds totals, with those behind it that tell something; empty where there is none.

    Of a session that went to sleep with it, the entry of its last work comes before.
    """
    length, run = END_BYTES, header.run
    while True:
        start = max(begin, size - length)
        lines = _lines_from(file, start, size)[start > begin :]
        for at in reversed(range(len(lines))):
            entry = _sound_entry(lines[at], run) if MARK in lines[at] else None
            if entry is not None and UsageTotals.of_data(entry.data.get(TOTALS)) is not None:
                sleeps = entry.kind in AT_REST and is_session(header)
                before = _last_work(lines[:at], run) if sleeps else []
                if sleeps and not before and start > begin:
                    break  # the line is longer than what was read
                return [*before, entry, *_telling_entries(lines[at + 1 :], run)]
        if start == begin:
            return []
        length *= 8


def _telling_entries(lines: Sequence[bytes], run: str) -> Iterator[JournalEntry]:
    """The entries that tell the end of a run and its usage, and that of its last work."""
    for line in lines:
        found = KIND.search(line, 0, KIND_WITHIN)
        entry = _sound_entry(line, run) if found is None or found[1] in TELLING else None
        if entry is not None:
            yield entry
    yield from (entry for entry in _last_work(lines, run) if entry.kind.encode() not in TELLING)


def _last_work(lines: Sequence[bytes], run: str) -> list[JournalEntry]:
    """The last entry that is no sleep and no waking; empty where there is none."""
    entries = (entry for line in reversed(lines) if (entry := _sound_entry(line, run)) is not None)
    return list(islice((entry for entry in entries if entry.kind not in AT_REST), 1))


def _sound_entry(line: bytes, run: str) -> JournalEntry | None:
    return None if not line.endswith(b"\n") or is_changed(line, run) else entry_in(line)
