"""The journals of a folder to the sessions that were at work when their process ended, so that they go on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from koi_lang.errors import JournalError
from koi_lang.events import CallEnded, CallStarted
from koi_lang.runtime.journal.reader import KIND_WITHIN, open_journal
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise

# Within texts of an entry the quotes are escaped, so that only names of fields look like this.
CALLS = re.compile(rb'"kind":"(%b|%b)"' % (CallStarted.type.encode(), CallEnded.type.encode()))


def find_unfinished(folder: Path, runs: Iterable[str]) -> list[str]:
    """The runs that neither go on nor have come to an end, and in which a call is under way."""
    return [run for run in runs if is_unfinished(path_of(folder, run))]


def is_unfinished(path: Path) -> bool:
    """Whether the run of a journal neither goes on nor has come to an end, and a call is under way in it."""
    try:
        return summarise(path).state == "interrupted" and has_open_call(path)
    except JournalError:  # one that cannot be read is looked at by who asks for it
        return False


def has_open_call(path: Path) -> bool:
    """Whether the call that was begun last has not ended. Raises JournalError."""
    kinds = list(_kinds(path))
    return bool(kinds) and kinds[-1] == CallStarted.type.encode()


def has_call(path: Path) -> bool:
    """Whether a call was begun. Raises JournalError."""
    return any(_kinds(path))


def _kinds(path: Path) -> Iterator[bytes]:
    """The kinds of the entries that begin and end calls."""
    with open_journal(path) as file:
        for line in file:
            found = CALLS.search(line, 0, KIND_WITHIN)
            if found is not None:
                yield found[1]
