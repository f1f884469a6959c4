"""The entries of a journal to what the models of its run took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from koi_lang.events import PAID
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.journal.entries import JournalEntry

# Where entries hold those so far.
TOTALS = "totals"


@dataclass(slots=True)
class Totals:
    """What models took, of the entries that were added.

    Attributes:
        requests: answers of models and rankings by their embeddings, those from a cache not counted.
        usd: what is known of their price.
        unpriced: whether some of them have a price that is not known.
    """

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: bool = False

    @staticmethod
    def of(entries: Iterable[JournalEntry]) -> Totals:
        """What some entries tell."""
        totals = Totals()
        for entry in entries:
            totals.add(entry)
        return totals

    @staticmethod
    def of_data(value: Any) -> Totals | None:
        """Totals from their JSON form; None where a value is none."""
        given = value if isinstance(value, dict) else {}
        kinds = {name: type(number) for name, number in given.items()}
        fits = kinds == {"requests": int, "tokens": int, "usd": float, "unpriced": bool}
        return Totals(**given) if fits else None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"requests": self.requests, "tokens": self.tokens, "usd": self.usd, "unpriced": self.unpriced}

    def add(self, entry: JournalEntry) -> None:
        """Count what an entry tells; what was known from an earlier run was paid for there."""
        if entry.kind in PAID and not (entry.data.get("replayed") or entry.data.get("recalled")):
            self._count(entry.data.get("tokens"), entry.data.get("usd"), entry.data.get("model"))

    def _count(self, tokens: Any, usd: Any, model: Any) -> None:
        counted = tokens if isinstance(tokens, dict) else {}
        self.requests += 1
        self.tokens += sum(n for name in ("input", "output") if isinstance(n := counted.get(name), int))
        if isinstance(usd, int | float):
            self.usd += usd
        elif model not in UNPAID:
            self.unpriced = True
