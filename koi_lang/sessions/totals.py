"""Events of a session to how much it has done and what that took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from koi_lang.events import PAID, Event
from koi_lang.runtime.budget.limits import UNPAID

COUNTED = {
    "action_ended": "actions",
    "action_failed": "failed_actions",
    "call_started": "calls",
    "steered": "notes",
    "printed": "printed",
}


@dataclass(slots=True)
class Statistics:
    """A consumer that counts.

    Attributes:
        requests: answers of models and rankings by their embeddings, those from a cache not counted.
        unpriced: whether some of them have a price that is not known.
    """

    requests: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: {"input": 0, "output": 0, "cached": 0})
    usd: float = 0.0
    unpriced: bool = False
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED.values(), 0))

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if event.type in COUNTED:
            self.counts[COUNTED[event.type]] += 1
        elif event.type in PAID and not event.fields.get("replayed"):
            self._count(event.fields)

    def _count(self, answered: dict[str, Any]) -> None:
        self.requests += 1
        for name in self.tokens:
            self.tokens[name] += answered["tokens"].get(name, 0)
        self.usd += answered["usd"] or 0.0
        self.unpriced |= answered["usd"] is None and answered.get("model") not in UNPAID

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        paid = {"requests": self.requests, "tokens": dict(self.tokens), "usd": self.usd, "unpriced": self.unpriced}
        return {**paid, **self.counts}
