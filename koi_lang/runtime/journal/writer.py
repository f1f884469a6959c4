"""Events to a growing file: every entry is handed to the system at once, and to the disk before a lasting effect."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import JournalError, reason
from koi_lang.runtime.journal.entries import ENDED, Entry, Header, Redact, entry_of, line_of

if TYPE_CHECKING:
    from koi_lang.runtime.events import Event


class Writer:
    """A consumer of events that owns one journal.

    The file is locked while it is written, so that others can tell a run that goes on from one that was interrupted;
    the system takes the lock away when the process ends, however it ends.

    Args:
        path: a file that does not exist yet; its folder is made. Without a header, a journal whose run goes on.
        redact: takes secrets out of a text.
        on_failure: is told once when the file cannot be written any more; the run goes on without a journal.
        count: how many entries there are.

    Raises:
        JournalError: the file cannot be written, or another process writes it.
    """

    def __init__(
        self, path: Path, header: Header | None, redact: Redact, on_failure: Callable[[str], None], count: int = 0
    ) -> None:
        self.path = path
        self._redact, self._on_failure = redact, on_failure
        self._count, self._is_named = count, header is None
        self._is_copy = header is not None
        try:
            self._file = _opened(path, is_new=header is not None)
            if header is not None:
                self._begin(header)
        except OSError as error:
            raise _unwritable(path, error) from error

    def __repr__(self) -> str:
        return "journal"

    def __call__(self, event: Event) -> None:
        """Write an event; what it announces may happen when this returns. Raises OSError.

        What is known from this journal is not written again; a journal of its own has what it goes on from, too.
        """
        if event.recalled and not self._is_copy:
            return
        self._count += 1
        try:
            self._write(line_of(entry_of(event, self._count), self._redact))
            if event.type == ENDED or (event.data.get("lasting") and not event.recalled):
                self._sync()
        except OSError as error:
            self._on_failure(f"the journal cannot be written any more: {reason(error)}")
            raise

    def note(self, kind: str, **data: Any) -> None:
        """Write an entry about the journal itself. Raises JournalError, and gives the file free, when that fails."""
        self._count += 1
        try:
            self._write(line_of(Entry(self._count, time.time(), kind, data=data), self._redact))
        except OSError as error:
            self.close()
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        """Give the file free."""
        os.close(self._file)

    def _begin(self, header: Header) -> None:
        """Write the first line; a file that has no room for it is left to nobody. Raises OSError."""
        with ExitStack() as undo:
            undo.callback(self.path.unlink)
            undo.callback(self.close)
            self._write(line_of(header, self._redact))
            undo.pop_all()

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


def _opened(path: Path, *, is_new: bool) -> int:
    """A journal to write, locked; a new one with its folder. Raises OSError, JournalError when it is being written."""
    if is_new:
        path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if is_new else 0), 0o600)
    with ExitStack() as undo:
        undo.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = f"the run `{path.stem}` goes on"
            raise JournalError(told, help="Wait until it has ended, or end it first.") from None
        undo.pop_all()
    return file


def _unwritable(path: Path, error: OSError) -> JournalError:
    help = "Make the folder writable, or run with `--no-record`."
    return JournalError(f"the journal `{path}` cannot be written: {reason(error)}", help=help)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on disk, too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
