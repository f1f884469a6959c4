"""The events behind the entries of a journal, for consumers that follow a run by its journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.events import (
    VERSION,
    ActionEnded,
    ActionFailed,
    ActionStarted,
    EffectEnded,
    EffectFailed,
    EffectStarted,
    EventData,
)
from koi_lang.runtime.journal.entries import REDACTED, JournalEntry
from koi_lang.runtime.journal.totals import LAST_CALL, TOTALS

# What only journals hold.
OF_JOURNALS = frozenset({TOTALS, LAST_CALL, REDACTED})
# Kinds that actions and effects share.
ACTIONS: Mapping[str, type[EventData]] = {
    type.journal_kind: type for type in (ActionStarted, ActionEnded, ActionFailed)
}
EFFECTS: Mapping[str, type[EventData]] = {
    type.journal_kind: type for type in (EffectStarted, EffectEnded, EffectFailed)
}


def event_data(entry: JournalEntry, run: str) -> dict[str, Any]:
    """The event that an entry was made of, in its JSON form; its number is that of the entry."""
    data = {name: value for name, value in entry.data.items() if name not in OF_JOURNALS}
    envelope = {"v": VERSION, "seq": entry.n, "ts": entry.ts, "run": run, "path": list(entry.path)}
    type = entry.kind
    if type in ACTIONS:  # these get an id at their begin; effects always have their inputs
        is_action = "id" in entry.data if type == ActionStarted.journal_kind else "fields" not in entry.data
        type = (ACTIONS if is_action else EFFECTS)[type].type
    return {**envelope, "agent": entry.agent, "type": type, **data}
