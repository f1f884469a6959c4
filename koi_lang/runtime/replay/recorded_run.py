"""The record of a run, looked up for the current location."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koi_lang.events import HandlerEnded, HandlerFailed, HandlerStarted, ModelAsked
from koi_lang.runtime.replay.digest_forms import FORM, form_number
from koi_lang.runtime.replay.location import Location, Path, current_place
from koi_lang.runtime.replay.policies import LIVE, ReplayPolicy

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import JournalEntry
    from koi_lang.runtime.journal.history import History

NOTHING_PAID = (0, 0.0, 0)
# For the replay of a run that was late.
MIN_REPLAY_S = 10.0


@dataclass(frozen=True, slots=True)
class Recall:
    """The record of a step at the current location.

    Attributes:
        entry: what was recorded of it; None where nothing was, or where what was recorded counts no more.
        is_whole: whether it can be given again as it was: no secret was taken out of it.
        must_not_begin: whether it had not begun when the code around it took too long.
    """

    entry: JournalEntry | None = None
    is_whole: bool = True
    must_not_begin: bool = False


NOTHING = Recall()


class RecordedRun:
    """The record of an earlier part of a run, of its parent, or of the run that it replays.

    Args:
        history: its entries; None for a run that begins.

    Attributes:
        policy: what is done with it.
    """

    def __init__(self, history: History | None) -> None:
        self.history = history
        self.policy: ReplayPolicy = LIVE if history is None else history.policy

    @property
    def is_live(self) -> bool:
        """Whether nothing was recorded before."""
        return self.history is None

    def time_limit(self, limit_s: float | None) -> float | None:
        """The limit of the work at the current location in seconds, as it counts here; None for none.

        In a replay only what took too long then does so now, however slow the machine is. A whole run that was late is
        ended where its record ends; it has some time to get there, unless it computes without an end.
        """
        if limit_s is None or self.policy.has_outside or self.history is None:
            return limit_s
        place = current_place()
        if not self.history.was_late(() if place is None else place.path):
            return None
        return limit_s if place is not None and place.path else max(limit_s, MIN_REPLAY_S)

    @property
    def is_settled(self) -> bool:
        """Whether the current call had ended in the record, so that nothing new may happen in it."""
        return self.history is not None and self.history.is_settled

    @property
    def fits_types(self) -> bool:
        """Whether the current call had ended, so that what it was given fitted the types of its time."""
        return self.history is not None and self.history.fit is not None and self.history.fit.is_past

    def recall(self, kind: str, path: Path | None = None) -> Recall:
        """The record of a step with entries of a kind, at the current location or on a path from there."""
        history, place = self._counting()
        if history is None or place is None:
            return NOTHING
        entry = history.find(kind, place.path if path is None else path)
        return self._as_recall(entry, place)

    def recall_outcome(self, path: Path | None = None) -> Recall:
        """The record of a step with an outcome: the end of an action or effect."""
        history, place = self._counting()
        if history is None or place is None:
            return NOTHING
        return self._as_recall(history.outcome(place.path if path is None else path), place)

    def _as_recall(self, entry: JournalEntry | None, place: Location) -> Recall:
        is_whole = entry is None or self.history is None or self.history.can_give(entry)
        return Recall(entry, is_whole, entry is None and place.state.is_over)

    def _counting(self) -> tuple[History | None, Location | None]:
        """The record and the location of its lookup, where it is valid for the current code."""
        place = current_place()
        is_counting = place is not None and not place.state.has_diverged
        return (self.history, place) if is_counting else (None, None)

    # ------------------------------------------------------------ what is new

    def accepts_input(self, *, before_request: bool = True) -> bool:
        """Whether something new may be said to the playbook at the current location: it has not been here before.

        Args:
            before_request: whether it is said before the next request to a model, which may have been recorded.
        """
        history, place = self._counting()
        if history is None or place is None:
            return True
        path = place.path
        if not self.policy.has_outside or place.state.is_over:
            return False
        if before_request and history.has(ModelAsked.type, (*path, place.next_label("model"))):
            return False
        around = [path[:n] for n in range(1, len(path) + 1)]
        return not any(history.has(kind, outer) for outer in around for kind in (HandlerEnded.type, HandlerFailed.type))

    def answer_form(self) -> int:
        """The form of the next request at the current location, which says how `${…}` in its answer is read."""
        asked = self.recall_request()
        return int(FORM) if asked is None else form_number(str(asked.data.get("request", "")))

    def recall_request(self) -> JournalEntry | None:
        """The next request to a model at the current location, where one was recorded."""
        history, place = self._counting()
        if history is None or place is None:
            return None
        return history.find(ModelAsked.type, (*place.path, place.next_label("model")))

    def had_ended(self) -> bool:
        """Whether the playbook at the current location had failed behind its last recorded answer, and stays so."""
        history, place = self._counting()
        if history is None or place is None or self.policy.reopens_limits == "all" or self.policy.is_of_past:
            return False
        path = place.path
        handler = path[:-1] if path[-1].startswith("attempt") else path
        asks_again = history.has(ModelAsked.type, (*path, place.next_label("model")))
        return not asks_again and history.has(HandlerFailed.type, handler)

    def accepts_request(self, action: Path) -> bool:
        """Whether a model may be asked for the target of an action: the record holds no decision."""
        history, _ = self._counting()
        if history is None:
            return True
        if not self.policy.has_outside:
            return False
        if history.find("begun", action) is None:
            return True
        begun = any(entry.kind == HandlerStarted.type and entry.path[:-1] == action for entry in history.entries)
        return not begun and history.outcome(action) is None

    # ------------------------------------------------------------ the run as a whole

    def entries_of(self, kind: str) -> Sequence[JournalEntry]:
        """All entries of a kind, in order."""
        return () if self.history is None else [entry for entry in self.history.entries if entry.kind == kind]

    def has_happened(self, type: str, path: Path) -> bool:
        """Whether an event is in the record, where that is valid for the current code."""
        return self.history is not None and self.history.has_happened(type, path)

    def paid(self, path: Path) -> tuple[int, float, int]:
        """The cost of models for this run at a path and below: tokens, usd where known, requests."""
        return self.history.paid(path) if self.history is not None and self.policy.is_same_run else NOTHING_PAID

    def has_paid(self, type: str, path: Path) -> bool:
        """Whether something was paid for before this run was interrupted, so that it counts from the beginning."""
        return self.policy.is_same_run and self.has_happened(type, path)

    def was_killed_at(self, path: Path) -> bool:
        """Whether a request was under way when the process was killed, so that nobody has counted it."""
        history, _ = self._counting()
        return history is not None and history.was_killed_at(path)
