"""The state of a session by its journal: its position, and the state of its agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.events import StateChanged
from koi_lang.runtime.journal.entries import event_data
from koi_lang.runtime.journal.reader import lines


@dataclass(slots=True)
class KnownState:
    """A moment of a session.

    Attributes:
        last: the number of the last entry; 0 where there is none.
        agents: the fields of each agent that has changed some, by its name.
    """

    last: int = 0
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_state(journal: Path, until: int | None = None) -> KnownState:
    """The state at an entry; without one at the end. A journal that cannot be read tells nothing."""
    known = KnownState()
    try:
        for line in lines(journal):
            entry = line.entry
            if entry is None or (until is not None and entry.n > until):
                continue
            known.last = entry.n
            if entry.kind == StateChanged.journal_kind:
                updates = event_data(entry, "").get("updates")
                known.agents.setdefault(entry.agent, {}).update(updates if isinstance(updates, dict) else {})
    except JournalError:
        return known
    return known
