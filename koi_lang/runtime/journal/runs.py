"""Runs kept as files of a folder: one journal each, locked while it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import Header, Redact
from koi_lang.runtime.journal.line_ends import Signer
from koi_lang.runtime.journal.reader import End, Journal, read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer


@dataclass(frozen=True, slots=True)
class FolderRuns:
    """The runs of programs that are run in a folder.

    Attributes:
        redact: takes secrets out of a text before it is kept.
        on_failure: is told once when a journal cannot be written any more, so that its run is ended.
        signer: what lines are signed with, if they are; a journal that goes on stays with what it was signed with.
    """

    folder: Path
    redact: Redact
    on_failure: Callable[[JournalError], None]
    signer: Signer | None = None

    def create(self, header: Header) -> Writer:
        """Begin the journal of a new run. Raises JournalError."""
        return Writer(path_of(self.folder, header.run), header, self.redact, self.on_failure, self.signer)

    def open(self, end: End) -> Writer:
        """Go on with a journal from where it was read. Raises JournalError."""
        signer = end.signer or self.signer
        return Writer(path_of(self.folder, end.run), end, self.redact, self.on_failure, signer)

    def read(self, run: str) -> Journal:
        """The stored journal of a run. Raises JournalError."""
        return read(path_of(self.folder, run), self.signer)
