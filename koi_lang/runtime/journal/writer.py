"""Events to a growing file: every entry is handed to the system at once, and to the disk before a lasting effect."""

from __future__ import annotations

import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import JournalError, reason
from koi_lang.events import PAID, RunEnded
from koi_lang.runtime.journal.entries import (
    LAST_CALL,
    TOTALS,
    Header,
    JournalEntry,
    Redact,
    entry_of,
    json_line,
    line_of,
)
from koi_lang.runtime.journal.line_ends import Chain, Signer, seal_line
from koi_lang.runtime.journal.reader import End, Journal, read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.totals import RunUsage
from koi_lang.system.file_locks import sync_folder, try_lock_patiently
from koi_lang.system.open_folders import make_state_folder

if TYPE_CHECKING:
    from koi_lang.events import Event


Follow = Callable[[JournalEntry], None]
# How many entries there are at most between two that hold totals.
EVERY = 100


class Writer:
    """A consumer of events that owns one journal.

    The file is locked while it is written, so that others can tell a run that goes on from one that was interrupted;
    the system takes the lock away when the process ends, however it ends.

    Args:
        path: of the file.
        begin: the header of a file that does not exist yet, whose folder is made; or the end of a journal that goes on.
        redact: takes secrets out of a text.
        on_failure: is told once when the file cannot be written any more, so that the run is ended.
        signer: what its lines are signed with, if they are; a journal that goes on stays with what it was signed with.
        followers: are told every entry behind the moment at which it was handed to the system.

    Attributes:
        usage: what the journal tells of the run up to now.

    Raises:
        JournalError: the file cannot be written, or another process writes it.
    """

    def __init__(
        self,
        path: Path,
        begin: Header | End,
        redact: Redact,
        on_failure: Callable[[JournalError], None],
        signer: Signer | None = None,
        followers: Sequence[Follow] = (),
    ) -> None:
        self.path = path
        self._redact = redact
        self._on_failure = on_failure
        self._followers = followers
        self._has_failed = self._has_ended = False
        end = begin if isinstance(begin, End) else End(begin.run)
        signer = end.signer or signer
        self._run = end.run
        self._count = end.count
        self._chain = None if signer is None else Chain(signer, end.state)
        self._is_copy = isinstance(begin, Header)
        self._is_named = not self._is_copy
        try:
            self._file = _open_locked(path, is_new=self._is_copy)
            status = os.fstat(self._file)
            self._size = status.st_size
            totals = replace(end.totals, by_kind=dict(end.totals.by_kind))
            self.usage = RunUsage(end.updated or status.st_mtime, end.count, totals, end.last_call)
            if isinstance(begin, Header):
                self._begin(begin)
            elif end.size not in (None, self._size):
                self.close()
                raise JournalError(f"the journal `{path}` has grown since it was read", help="Try again.")
        except OSError as error:
            raise _unwritable(path, error) from error

    def __repr__(self) -> str:
        return "journal"

    def __call__(self, event: Event) -> None:
        """Write an event; its effect may take place when this returns.

        What is known from this journal is not written again; a journal of its own has what it goes on from, too.

        Raises:
            CancelledError: the file cannot be written any more, and what begins may not be done twice.
        """
        if event.recalled and not self._is_copy:
            json_line(event.fields, self._redact)  # the secrets in it are known again, as when it was written
            return
        entry = entry_of(event, self._count + 1)
        if not self._has_failed:
            self._keep(entry, recalled=event.recalled)
        if self._has_failed and entry.data.get("unsafe"):
            raise CancelledError

    def stop(self) -> None:
        """Write nothing any more: the run is to go on from here, as if the process had been killed."""
        self.settle()
        self._has_failed = True

    def settle(self) -> None:
        """Wait until all that was written is on the disk."""
        try:
            self._sync()
        except OSError as error:
            self._fail(error, self._size)

    def _keep(self, entry: JournalEntry, *, recalled: bool) -> None:
        """Write an entry; after a failure nothing is written any more."""
        size = self._size
        try:
            self._add(self._with_totals(entry))
            self._count += 1
            if entry.kind == RunEnded.type or (entry.data.get("lasting") and not recalled):
                self._sync()
            if entry.data.get("unsafe") and not recalled:
                self._require_file()
        except (OSError, JournalError) as error:
            self._fail(error, size)
        else:
            for follow in self._followers:
                follow(entry)

    def _fail(self, error: OSError | JournalError, size: int) -> None:
        """Have the run ended, once; the file ends as it did before."""
        if self._has_failed:
            return
        self._has_failed = True
        with suppress(OSError):
            os.ftruncate(self._file, size)
        self._on_failure(error if isinstance(error, JournalError) else _broken_off(self._run, error))

    def _with_totals(self, entry: JournalEntry) -> JournalEntry:
        """An entry with the totals and the end of the last call, where due, so that summaries read ends of files."""
        self.usage.add(entry)
        is_due = entry.kind == RunEnded.type or entry.kind in PAID or entry.n % EVERY == 0
        if self._has_ended or not is_due:
            return entry
        self._has_ended = entry.kind == RunEnded.type  # nothing that follows is part of the run
        call = {} if self.usage.last_call is None else {LAST_CALL: asdict(self.usage.last_call)}
        return replace(entry, data={**entry.data, TOTALS: self.usage.totals.as_data(), **call})

    def _require_file(self) -> None:
        """Raise JournalError where the file has been removed: further lines would be lost with it."""
        if os.fstat(self._file).st_nlink == 0:
            help = "What the run has done is not known any more. `koi run --no-record` needs no journal."
            raise JournalError(f"the journal `{self.path}` was removed while it was written", help=help)

    def note(self, kind: str, **data: Any) -> None:
        """Write an entry about the journal itself. Raises JournalError, and gives the file free, when that fails."""
        entry = JournalEntry(self._count + 1, time.time(), kind, data=data)
        try:
            self._add(entry)
            self._count += 1
            self.usage.add(entry)
        except OSError as error:
            self.close()
            raise _unwritable(self.path, error) from error
        for follow in self._followers:
            follow(entry)

    def close(self) -> None:
        """Give the file free."""
        os.close(self._file)

    def _begin(self, header: Header) -> None:
        """Write the first line; a file that has no room for it is left to nobody. Raises OSError."""
        with ExitStack() as undo:
            undo.callback(self.path.unlink)
            undo.callback(self.close)
            self._add(header)
            undo.pop_all()

    def _sync(self) -> None:
        """Wait until everything is on the disk, the first time also the name of the file."""
        os.fsync(self._file)
        if not self._is_named:
            sync_folder(self.path.parent)
            self._is_named = True

    def _add(self, content: Header | JournalEntry) -> None:
        line = seal_line(line_of(content, self._redact), self._run)
        if self._chain is not None:
            line = self._chain.sign(line)
        # One call as a rule; the system may take less when the disk is nearly full.
        rest = line
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size += len(line)


def _open_locked(path: Path, *, is_new: bool) -> int:
    """A journal to write, locked; a new one with its folder. Raises OSError, JournalError when it is being written."""
    if is_new and (not path.parent.is_dir() or path.parent.is_symlink() or path.parents[1].is_symlink()):
        make_state_folder(path.parent)
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags | (os.O_CREAT | os.O_EXCL if is_new else 0), 0o600)
    with ExitStack() as undo:
        undo.callback(os.close, file)
        if not try_lock_patiently(file):
            message = f"the run `{path.stem}` goes on"
            raise JournalError(message, help="Wait until it has ended, or end it first.")
        undo.pop_all()
    return file


def _unwritable(path: Path, error: OSError) -> JournalError:
    help = "Make the folder writable, or run with `--no-record`."
    return JournalError(f"the journal `{path}` cannot be written: {reason(error)}", help=help)


def _broken_off(run: str, error: OSError) -> JournalError:
    help = f"Make room, or make it writable; then go on with the run `{run}`."
    return JournalError(f"the journal cannot be written any more: {reason(error)}", help=help)


@dataclass(frozen=True, slots=True)
class FolderRuns:
    """The runs of programs that are run in a folder.

    Attributes:
        redact: takes secrets out of a text before it is kept.
        on_failure: is told once when a journal cannot be written any more, so that its run is ended.
        signer: as of `Writer`.
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
        return Writer(path_of(self.folder, end.run), end, self.redact, self.on_failure, self.signer)

    def read(self, run: str) -> Journal:
        """The stored journal of a run. Raises JournalError."""
        return read(path_of(self.folder, run), self.signer)
