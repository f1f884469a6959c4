"""Comparison of entries, and of the inputs of effects, with the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from koi_lang.events import (
    ExpectationMissed,
    HandlerEnded,
    HandlerFailed,
    HandlerStarted,
    LinePrinted,
    RunEnded,
    ScoreGiven,
    StateChanged,
)
from koi_lang.js.tagged_json import TAG
from koi_lang.redaction.names import HEADER_VALUES

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import JournalEntry

# What of an entry must be the same; a request that reads differently is told, but its answer is taken all the same.
COMPARED: Mapping[str, tuple[str, ...]] = {
    "begun": ("intent", "fields"),
    "done": ("intent", "fields", "result", "opaque", "changed"),
    "failed": ("intent", "fields", "error", "changed"),
    LinePrinted.type: ("message",),
    HandlerStarted.type: ("args",),
    HandlerEnded.type: ("result",),
    HandlerFailed.type: ("error",),
    StateChanged.type: ("updates",),
    ExpectationMissed.type: ("message", "details"),
    ScoreGiven.type: ("name", "value"),
    RunEnded.type: ("ok",),
}


def compared_data(entry: JournalEntry) -> Mapping[str, Any]:
    """The fields of an entry that must be the same."""
    return {name: entry.data[name] for name in COMPARED[entry.kind] if name in entry.data}


def is_same_entry(recorded: JournalEntry, now: JournalEntry) -> bool:
    """Whether two entries of one kind say the same, also where one has an older form of values beyond JSON."""
    sides = then, data = compared_data(recorded), compared_data(now)
    if then == data or not (then and data):
        return then == data
    left_out = {"fields", "result", "opaque"} if then.get("opaque") is True else {"fields"}
    rest = [{name: side[name] for name in side if name not in left_out} for side in sides]
    return rest[0] == rest[1] and is_same_input(then.get("fields"), data.get("fields"))


def is_same_input(recorded: Any, now: Any) -> bool:
    """Whether the inputs of an effect equal the recorded ones.

    Older journals hold no headers of requests, and `<tuple>` for what has a tag now.
    """
    if isinstance(recorded, dict) and isinstance(now, dict) and HEADER_VALUES not in recorded:
        now = {name: value for name, value in now.items() if name != HEADER_VALUES}
    return bool(recorded == now) or (isinstance(now, dict) and bool(recorded == _without_tags(now)))


def _without_tags(given: Mapping[str, Any]) -> dict[str, Any]:
    args, named = given.get("args", ()), given.get("named", {})
    older: dict[str, Any] = {"args": [_named_by_type(value) for value in args]}
    return {**older, "named": {key: _named_by_type(value) for key, value in named.items()}} if named else older


def _named_by_type(value: Any) -> Any:
    if not _has_tag(value):
        return value
    name = value[TAG].rpartition(".")[2] if isinstance(value, dict) and TAG in value else type(value).__name__
    return f"<{name}>"


def _has_tag(value: Any) -> bool:
    if isinstance(value, dict):
        return TAG in value or any(map(_has_tag, value.values()))
    return isinstance(value, list) and any(map(_has_tag, value))
