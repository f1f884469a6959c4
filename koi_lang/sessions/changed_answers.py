"""An entry to go back to, with another answer there: of the model, or of the person."""

from __future__ import annotations

from collections.abc import Sequence

from koi_lang.errors import UsageError
from koi_lang.events import ModelAnswered
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import until, with_answer

# Which field of an entry holds the answer.
FIELDS = {ModelAnswered.type: "text", "done": "result"}


def back_to(at: int, answer: str | None, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """The entries up to one, which has another answer where there is one. Raises UsageError where it holds none."""
    kept = until(entries, at)
    if answer is None:
        return kept
    chosen = next((entry for entry in entries if entry.n == at), None)
    field = None if chosen is None else FIELDS.get(chosen.kind)
    if chosen is None or field is None or (field == "result" and not _is_from_person(chosen)):
        help = "Choose an entry `model_answered`, or the end of a `prompt_user`."
        raise UsageError(f"entry {at} is no answer that can be replaced", help=help)
    return with_answer(kept, at, field, answer if field == "text" else {"answer": answer})


def _is_from_person(entry: JournalEntry) -> bool:
    result = entry.data.get("result")
    return entry.data.get("intent") == "prompt_user" and isinstance(result, dict)
