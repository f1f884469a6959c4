"""The entries of a journal in pages, from a growing file; earlier pages are skipped unread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.runtime.journal.checksums import is_changed
from koi_lang.runtime.journal.entries import JournalEntry, entry_in, header_of
from koi_lang.runtime.journal.reader import MAX_HEADER_BYTES, open_journal

# Lines begin with their number, so that those that are not wanted are passed over unread.
NUMBER = re.compile(rb'\{"n":(\d+),')
MAX_ENTRIES = 2000


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Some entries of a journal.

    Attributes:
        last: the number of the last one, or where the reader has asked from.
        more: whether there are further ones.
    """

    entries: tuple[JournalEntry, ...]
    last: int
    more: bool

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"entries": [entry.as_data() for entry in self.entries], "last": self.last, "more": self.more}


def read_page(path: Path, since: int, limit: int) -> EntryPage:
    """The entries behind the one with the number `since`, at most `limit` and 2,000. Raises JournalError."""
    most = min(max(limit, 1), MAX_ENTRIES)
    found: list[JournalEntry] = []
    for entry in _entries_behind(path, since):
        if len(found) == most:
            return EntryPage(tuple(found), found[-1].n, more=True)
        found.append(entry)
    return EntryPage(tuple(found), found[-1].n if found else since, more=False)


def _entries_behind(path: Path, since: int) -> Iterator[JournalEntry]:
    """The sound entries behind one; a last line that is not whole may still be on its way."""
    with open_journal(path) as file:
        run = header_of(file.readline(MAX_HEADER_BYTES), path.name).run
        for line in file:
            number = NUMBER.match(line)
            if number is not None and int(number[1]) <= since:
                continue
            entry = entry_in(line) if line.endswith(b"\n") and not is_changed(line, run) else None
            if entry is not None and entry.n > since:
                yield entry
