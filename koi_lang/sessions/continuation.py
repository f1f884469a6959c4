"""The record that a run continues or repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.writer import Follow
from koi_lang.runtime.run import Run

if TYPE_CHECKING:
    from koi_lang.runtime.journal.history import History
    from koi_lang.runtime.journal.reader import End


class LivePort(Protocol):
    """The port through which other processes follow a run."""

    def follow(self, entry: JournalEntry) -> None:
        """Be told an entry that was written to the journal."""

    def serve(self, run: Run, journal: Path) -> AbstractContextManager[None]:
        """A context in which the run can be followed."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The record that a run continues or repeats; empty for a new one.

    Attributes:
        history: what is known of it.
        run: id of the run that goes on, or of a new one; empty where a new one makes its own.
        seed: what its random numbers follow from.
        today: date and place that its models were told.
        end: of its journal; None for a run with a new one.
        parent: the run that a branch goes on from, and the number of the last entry that counts for it.
        words: of the command line that began it.
        more: words that this command line adds to those, of models and limits.
        model: that it was begun with, as `-m` named it; empty where another one counts.
        effort: that its models were asked for, as `-e` named it; empty where another one counts.
        limits: those of an earlier session that this command line does not set.
        consumers: are told every event.
        followers: are told every entry that is written to the journal.
        live: lets other processes follow it; None where none may.
        case: what the header of a new journal says of the case of an evaluation.
        scope: has the run end when it is cancelled from outside.
        command: with the id of the run behind it, goes on where that was interrupted.
    """

    history: History | None = None
    run: str = ""
    seed: str = ""
    today: str = ""
    end: End | None = None
    parent: tuple[str, int] | None = None
    words: Sequence[str] = ()
    more: Sequence[str] = ()
    model: str = ""
    effort: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    consumers: Sequence[Consumer] = ()
    followers: Sequence[Follow] = ()
    live: LivePort | None = None
    case: Mapping[str, Any] = field(default_factory=dict)
    scope: CancelScope | None = None
    command: str = "koi resume"


NEW_RUN = Continuation()
