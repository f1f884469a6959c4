"""Usage and progress of a session, from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from koi_lang.events import ActionEnded, ActionFailed, CallStarted, Event, LinePrinted, MessageDelivered
from koi_lang.runtime.journal.totals import UsageTotals

COUNTED = {
    ActionEnded.type: "actions",
    ActionFailed.type: "failed_actions",
    CallStarted.type: "calls",
    MessageDelivered.type: "notes",
    LinePrinted.type: "printed",
}


@dataclass(slots=True)
class Statistics:
    """A consumer that counts.

    What a session that goes on had done before counts, too: it is told again, as recalled. What that took is `usage`
    from the beginning.
    """

    usage: UsageTotals = field(default_factory=UsageTotals)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED.values(), 0))

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if event.type in COUNTED:
            self.counts[COUNTED[event.type]] += 1
        else:
            self.usage.add(event)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self.usage.as_data(), "tokens": dict(self.usage.by_kind), **self.counts}
