"""A journal to everything in it that was paid for: when, for which agent, to which model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from koi_lang.events import PAID
from koi_lang.runtime.journal.entries import Header, JournalEntry, entry_in, header_of
from koi_lang.runtime.journal.journal_folder import JournalFolder
from koi_lang.runtime.journal.line_ends import is_changed
from koi_lang.runtime.journal.reader import KIND_WITHIN, MAX_HEADER_BYTES, open_journal

# Within texts of an entry the quotes are escaped, so that only names of fields look like this.
MARK = re.compile(rb'"kind":"(?:%b)"' % b"|".join(kind.encode() for kind in PAID))
PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class PaidItem:
    """One thing that was paid for.

    Attributes:
        ts: seconds since the epoch.
        tokens: by what they were: `input`, `output` and `cached`.
        usd: None where its price is not known.
    """

    ts: float
    agent: str
    model: str
    tokens: dict[str, int]
    usd: float | None

    def as_data(self) -> dict[str, object]:
        """It as `UsageTotals.count` takes it."""
        return {"model": self.model, "tokens": self.tokens, "usd": self.usd}


@dataclass(slots=True)
class RunCosts:
    """The payments of a run; payments that a branch reuses count for its parent.

    Attributes:
        path: of the journal.
        inode: of the file that was read.
        read: how many bytes of it.
    """

    path: Path
    header: Header
    inode: int
    read: int
    payments: list[PaidItem] = field(default_factory=list)

    @property
    def run(self) -> str:
        """The id, as `koi runs` tells it."""
        return self.path.stem


def read_costs(path: Path, before: RunCosts | None = None) -> RunCosts:
    """The payments of the run of a journal. Raises JournalError.

    Args:
        before: what was read earlier; only what the file has grown by since then is read.
    """
    with open_journal(path) as file:
        found = os.fstat(file.fileno())
        costs = before
        if costs is None or costs.inode != found.st_ino or costs.read > found.st_size:
            header = header_of(file.readline(MAX_HEADER_BYTES), path.name)
            costs = RunCosts(path, header, found.st_ino, file.tell())
        for entry in _paid_entries(file, costs):
            payment = _payment_of(entry)
            if payment is not None:
                costs.payments.append(payment)
    return costs


def open_costs(folder: Path) -> JournalFolder[RunCosts]:
    """The payments of the runs of a folder, to be looked at repeatedly."""
    return JournalFolder(folder, read_costs)


def _paid_entries(file: BinaryIO, costs: RunCosts) -> Iterator[JournalEntry]:
    """The payment entries behind the part already read; only lines with one are parsed."""
    file.seek(costs.read)
    rest = b""
    while piece := file.read(PIECE):
        whole, end, rest = (rest + piece).rpartition(b"\n")
        costs.read += len(whole) + len(end)
        for line in _paid_lines(whole + end):
            entry = None if is_changed(line, costs.header.run) else entry_in(line)
            if entry is not None:
                yield entry


def _paid_lines(text: bytes) -> Iterator[bytes]:
    for mark in MARK.finditer(text):
        start = text.rfind(b"\n", 0, mark.start()) + 1
        if mark.start() - start < KIND_WITHIN:
            yield text[start : text.find(b"\n", mark.end()) + 1]


def _payment_of(entry: JournalEntry) -> PaidItem | None:
    """The payment of an entry; None if an earlier part of the run or its parent has paid."""
    data = entry.data
    if entry.kind not in PAID or data.get("recalled") or data.get("replayed"):
        return None
    usd, counted = data.get("usd"), data.get("tokens")
    tokens = counted if isinstance(counted, dict) else {}
    kept = {name: number for name, number in tokens.items() if isinstance(number, int)}
    return PaidItem(
        entry.ts, entry.agent, str(data.get("model", "")), kept, usd if isinstance(usd, int | float) else None
    )
