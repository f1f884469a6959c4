"""Usage totals and the end of the last call, from the events of a run or the entries of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.events import PAID, CallEnded, CallStarted, Event, RunEnded, RunResumed
from koi_lang.runtime.budget.limits import UNPAID

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import JournalEntry


# What a session writes when it goes to sleep and when it wakes, which is no work.
AT_REST = (RunEnded.type, RunResumed.type)


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of the call that a session has begun last.

    Attributes:
        n: number of the entry.
        ok: whether it has a result.
        aborted: whether somebody has cancelled it.
    """

    n: int
    ok: bool
    aborted: bool = False

    @staticmethod
    def after(entry: JournalEntry, before: CallEnd | None) -> CallEnd | None:
        """The end of the last call behind an entry; None where none has ended since one has begun."""
        if entry.kind == CallEnded.type:
            return CallEnd(entry.n, entry.data.get("ok") is True, entry.data.get("aborted") is True)
        return None if entry.kind == CallStarted.type else before

    @property
    def is_failure(self) -> bool:
        """Whether the call ended with an error."""
        return not (self.ok or self.aborted)


@dataclass(slots=True)
class UsageTotals:
    """The usage of models, summed over events.

    What is paid for counts once: where it happened. An event that is recalled tells of what an earlier part of the run
    has counted, or the run that this one is a branch of; so totals that go on begin with what the earlier part took.
    An answer that came from a cache, or was `replayed` by other means, took nothing and is no request.

    Attributes:
        requests: answers of models, attempts that came to nothing, and rankings by embeddings.
        tokens: read and written.
        usd: what is known of their price.
        unpriced: whether some of them have a price that is not known.
        by_kind: tokens by what they were, such as `input`; totals that were read from a journal do not tell that.
    """

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: bool = False
    by_kind: dict[str, int] = field(default_factory=lambda: {"input": 0, "output": 0, "cached": 0}, compare=False)

    @staticmethod
    def of(entries: Iterable[JournalEntry]) -> UsageTotals:
        """The totals of some entries."""
        totals = UsageTotals()
        for entry in entries:
            totals.add_entry(entry)
        return totals

    @staticmethod
    def of_data(value: Any) -> UsageTotals | None:
        """Totals from their JSON form; None where a value is none."""
        given = value if isinstance(value, dict) else {}
        kinds = {name: type(number) for name, number in given.items()}
        fits = kinds == {"requests": int, "tokens": int, "usd": float, "unpriced": bool}
        return UsageTotals(**given) if fits else None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"requests": self.requests, "tokens": self.tokens, "usd": self.usd, "unpriced": self.unpriced}

    def add(self, event: Event) -> None:
        """Count the usage of an event."""
        if event.type in PAID and not event.recalled:
            self.count(event.fields)

    def add_entry(self, entry: JournalEntry) -> None:
        """Count the usage of an entry, by the rule for events."""
        if entry.kind in PAID and not entry.data.get("recalled"):
            self.count(entry.data)

    def count(self, paid: Mapping[str, Any]) -> None:
        """Count something paid by its `model`, `tokens` and `usd`, unless it was `replayed`."""
        if paid.get("replayed"):
            return
        self.requests += 1
        tokens, usd = paid.get("tokens"), paid.get("usd")
        counted = tokens if isinstance(tokens, dict) else {}
        for name in self.by_kind:
            number = counted.get(name)
            self.by_kind[name] += number if isinstance(number, int) else 0
            self.tokens += number if isinstance(number, int) and name != "cached" else 0
        if isinstance(usd, int | float):
            self.usd += usd
        elif paid.get("model") not in UNPAID:
            self.unpriced = True


@dataclass(slots=True)
class RunUsage:
    """The position of a run, its usage, and the end of its last call.

    Attributes:
        updated: when it worked last, in seconds since the epoch; a session that sleeps or wakes does not work.
        entries: number of its last entry.
    """

    updated: float
    entries: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)
    last_call: CallEnd | None = None

    def add(self, entry: JournalEntry) -> None:
        """Count an entry that is written."""
        self.entries = max(self.entries, entry.n)
        if entry.kind not in AT_REST:
            self.updated = max(self.updated, entry.ts)
        self.totals.add_entry(entry)
        self.last_call = CallEnd.after(entry, self.last_call)
