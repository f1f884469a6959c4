"""Runs inside the test process that are cut after some of their entries and gone on with, as `koi resume` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.events import Event
from koi_lang.runtime.journal.entries import JournalEntry, Redact, entry_in, entry_of, line_of
from koi_lang.runtime.journal.history import RESUMED, History, lasting_entries
from koi_lang.runtime.replay.doubts import STOP, Choice, Decision, Doubt
from tests.playbook.playing import Played, Player

SEED = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Tape:
    """A run and the entries of its journal, those of all its parts."""

    played: Played
    entries: tuple[JournalEntry, ...]

    @property
    def printed(self) -> list[str]:
        """Everything that its parts printed."""
        return printed_in(self.entries)

    @property
    def outcome(self) -> tuple[list[str], Any, str]:
        """What it printed and gave, and the message of what it failed with."""
        return self.printed, self.played.result, self.played.told


@dataclass(frozen=True, slots=True)
class Recorder:
    """A program, the answers of its model, and what else its runs are given."""

    play: Player
    source: str
    answers: Any = ()
    services: Mapping[str, Any] = field(default_factory=dict)

    def run(self, payload: Any = None) -> Tape:
        """The whole run."""
        return self._played((), payload)

    def again(
        self,
        entries: Sequence[JournalEntry],
        payload: Any = None,
        decisions: Mapping[tuple[str, ...], Choice] | Choice | None = None,
    ) -> Tape:
        """What a run comes to that goes on from some entries, with decisions by path, or one for all doubts."""

        def decide(doubt: Doubt) -> Decision:
            if isinstance(decisions, str):
                return Decision(decisions)
            return Decision(decisions[doubt.path]) if decisions and doubt.path in decisions else STOP

        before = (*entries, JournalEntry(len(entries) + 1, 0.0, RESUMED))
        return self._played(before, payload, history=History(lasting_entries(entries), "resume", str, decide))

    def over(self, past: History, payload: Any = None) -> Tape:
        """What a run comes to that is given what is known of an earlier one."""
        return self._played((), payload, history=past)

    def _played(self, before: Sequence[JournalEntry], payload: Any, **services: Any) -> Tape:
        answers = self.answers() if callable(self.answers) else self.answers
        given = {**self.services, **services}
        played = self.play(self.source, answers, payload=payload, detailed=True, seed=SEED, **given)
        new = [event for event in played.events if not event.recalled]
        return Tape(played, (*before, *(written(event, len(before) + n) for n, event in enumerate(new, 1))))


def written(event: Event, n: int) -> JournalEntry:
    """An event as it is read back from a journal."""
    return entry_of_line(entry_of(event, n), str)


def entry_of_line(entry: JournalEntry, redact: Redact) -> JournalEntry:
    """An entry as it is read back, without secrets."""
    read = entry_in(line_of(entry, redact))
    assert read is not None
    return read


def printed_in(entries: Sequence[JournalEntry]) -> list[str]:
    """What some entries tell of the output."""
    return [str(entry.data["message"]) for entry in entries if entry.kind == "printed"]


def each_cut(recorder: Recorder, payload: Any = None) -> list[Tape]:
    """A run, cut after each of its entries and resumed; it was seen that each of these, cut at its end, is the same.

    The clock goes on meanwhile, so what had not happened before the cut may happen in another order.
    """
    whole = recorder.run(payload)
    tapes = []
    for n in range(1, len(whole.entries)):
        cut = whole.entries[:n]
        rest = recorder.again(cut, payload, {entry.path: "retry" for entry in cut})
        last = recorder.again(rest.entries[:-1], payload)
        shown = (printed_in(cut), list(rest.played.printed), list(last.played.printed))
        assert (rest.printed, []) == (shown[0] + shown[1], shown[2]), (n, cut[-1])
        assert rest.outcome == last.outcome, (n, cut[-1])
        tapes.append(rest)
    return [whole, *tapes]
