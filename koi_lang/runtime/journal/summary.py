"""A journal to what came of its run: how it ended, how long it took, what its models took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from koi_lang.runtime.journal.entries import ENDED, Entry, Header
from koi_lang.runtime.journal.reader import lines, read_header
from koi_lang.runtime.journal.store import is_running
from koi_lang.runtime.limits import PAID, UNPAID

State = Literal["ok", "failed", "interrupted", "running"]


@dataclass(slots=True)
class Summary:
    """What came of a run.

    Attributes:
        seconds: from its start to its last entry.
        requests: answers of models and rankings by their embeddings, those from a cache not counted.
        unpriced: whether some of them have a price that is not known.
        damaged: how many whole lines could not be read.
        torn: whether the last line is not whole.
    """

    header: Header
    state: State = "interrupted"
    seconds: float = 0.0
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: bool = False
    damaged: int = 0
    torn: bool = False

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        self.seconds = max(self.seconds, entry.ts - self.header.started)
        if entry.kind == ENDED:
            self.state = "ok" if entry.data.get("ok") else "interrupted" if entry.data.get("interrupted") else "failed"
        elif entry.kind in ("run_started", "resumed"):
            self.state = "interrupted"
        elif entry.kind in PAID and not (entry.data.get("replayed") or entry.data.get("recalled")):
            self._count(entry.data.get("tokens"), entry.data.get("usd"), entry.data.get("model"))

    def _count(self, tokens: Any, usd: Any, model: Any) -> None:
        counted = tokens if isinstance(tokens, dict) else {}
        self.requests += 1
        self.tokens += sum(n for name in ("input", "output") if isinstance(n := counted.get(name), int))
        if isinstance(usd, int | float):
            self.usd += usd
        elif model not in UNPAID:
            self.unpriced = True


def summarise(path: Path) -> Summary:
    """What came of the run of a journal. Raises JournalError."""
    # Asked first: a run that ends while it is read is then not taken for one that was interrupted.
    running = is_running(path)
    summary = Summary(read_header(path))
    for line in lines(path):
        if line.entry is not None:
            summary.add(line.entry)
        elif line.is_whole:
            summary.damaged += 1
        else:
            summary.torn = True
    if running and summary.state == "interrupted":
        summary.state = "running"
    return summary
