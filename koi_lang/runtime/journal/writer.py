"""Events to a growing file: every entry is handed to the system at once, and to the disk before a lasting effect."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import ENDED, Header, Redact, entry_of, line_of

if TYPE_CHECKING:
    from koi_lang.runtime.events import Event


class Writer:
    """A consumer of events that owns one journal.

    The file is locked while it is written, so that others can tell a run that goes on from one that was interrupted;
    the system takes the lock away when the process ends, however it ends.

    Args:
        path: a file that does not exist yet; its folder is made.
        redact: takes secrets out of a text.
        on_failure: is told once when the file cannot be written any more; the run goes on without a journal.

    Raises:
        JournalError: the file cannot be created.
    """

    def __init__(self, path: Path, header: Header, redact: Redact, on_failure: Callable[[str], None]) -> None:
        self.path = path
        self._redact, self._on_failure = redact, on_failure
        self._count, self._is_named = 0, False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._write(line_of(header, redact))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            help = "Make the folder writable, or run without `--record`."
            raise JournalError(f"the journal `{path}` cannot be written: {reason}", help=help) from error

    def __repr__(self) -> str:
        return "journal"

    def __call__(self, event: Event) -> None:
        """Write an event; what it announces may happen when this returns. Raises OSError."""
        self._count += 1
        try:
            self._write(line_of(entry_of(event, self._count), self._redact))
            if event.type == ENDED or event.data.get("lasting"):
                self._sync()
        except OSError as error:
            self._on_failure(f"the journal cannot be written any more: {(error.strerror or str(error)).lower()}")
            raise

    def close(self) -> None:
        """Give the file free."""
        os.close(self._file)

    def _sync(self) -> None:
        """Wait until everything is on the disk, the first time also the name of the file."""
        os.fsync(self._file)
        if not self._is_named:
            _sync_folder(self.path.parent)
            self._is_named = True

    def _write(self, line: bytes) -> None:
        # One call as a rule; the system may take less when the disk is nearly full.
        while line:
            line = line[os.write(self._file, line) :]


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on disk, too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
