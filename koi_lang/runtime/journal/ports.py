"""Ports of run storage: journals, and the right to write them.

A file in a folder is one implementation; `tests/journal/test_contract.py` says what any has to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koi_lang.events import Event
    from koi_lang.runtime.journal.entries import Header, JournalEntry
    from koi_lang.runtime.journal.reader import End


class JournalPort(Protocol):
    """The journal of one run, locked by its writer until it is closed; a consumer of the events of the run."""

    def __call__(self, event: Event) -> None:
        """Append an event. One that is lasting is settled when this returns; others may be on their way.

        Raises:
            asyncio.CancelledError: it could not be kept, and what it announces may not be done twice.
        """

    def settle(self) -> None:
        """Wait until everything appended survives a crash of the process and of the machine."""

    def close(self) -> None:
        """Settle nothing more, and let others go on with the run."""


class KeptRun(Protocol):
    """A stored run."""

    @property
    def header(self) -> Header:
        """The header of its journal."""

    @property
    def entries(self) -> Sequence[JournalEntry]:
        """Its entries, in order."""

    @property
    def end(self) -> End:
        """Where its journal goes on."""


class RunsPort(Protocol):
    """Where runs are kept."""

    def create(self, header: Header) -> JournalPort:
        """Begin the journal of a new run, and hold it. Raises JournalError when there is one, or it cannot be kept."""

    def open(self, end: End) -> JournalPort:
        """Go on with a journal from where it was read, and hold it.

        Raises:
            JournalError: somebody else holds it, or it has grown since it was read.
        """

    def read(self, run: str) -> KeptRun:
        """A stored run, also while it goes on. Raises JournalError when there is none."""
