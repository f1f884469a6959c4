"""A journal to what is known when its run, or its session, goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from koi_lang.errors import JournalError, UsageError
from koi_lang.events import RunEnded
from koi_lang.program import cache
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.history import RESUMED, History
from koi_lang.runtime.journal.reader import Journal
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.recording import VERSION
from koi_lang.sessions.trust import read_signed


def readable(path: Path, folder: Path, note: Callable[[str], None]) -> Journal:
    """A journal that nobody writes, its torn end cut off; what it lacks is told, a line each. Raises JournalError."""
    if store.is_running(path):
        raise JournalError(f"the run `{path.stem}` goes on", help="Wait until it has ended, or end it first.")
    cut = store.repair(path)
    if cut:
        note(f"{cut} bytes of a torn line were cut off and kept in {path.with_suffix(store.TORN).name}")
    journal = own_journal(path, folder, note)
    for fault in journal.faults:
        note(f"warning: {fault}; what was told there is done again where that does no harm")
    return journal


def own_journal(path: Path, folder: Path, note: Callable[[str], None]) -> Journal:
    """A journal of a folder, with what is known of its signatures. Raises JournalError."""
    journal = read_signed(path, folder, note)
    run = journal.header.run
    if path.stem != run:
        help = f"Give it its name back: `{run}{store.SUFFIX}`."
        raise JournalError(f"`{path.name}` is the journal of the run `{run}`", help=help)
    return journal


def is_changed(header: Header, entry: cache.CachedModule) -> bool:
    """Whether a program is another one than when the journal was begun.

    A newer Koi changes nothing: what its journals are like has a number of its own, and what it does otherwise is found
    where it happens.
    """
    return header.hash != entry.version()


def has_other_versions(journal: Journal) -> bool:
    """Whether a session has gone on with another version of its program than that of the header."""
    return any(entry.kind == RESUMED and VERSION in entry.data for entry in journal.entries)


def words_since(journal: Journal) -> list[str]:
    """What was said of models and limits each time the run of a journal went on."""
    noted = [entry.data.get("words", []) for entry in journal.entries if entry.kind == RESUMED]
    return [str(word) for words in noted if isinstance(words, list) for word in words]


def require_entry(at: int, journal: Journal) -> None:
    """Raise UsageError when a journal has no entry of a number that a run can go back to."""
    if all(entry.n != at or entry.kind == RunEnded.type for entry in journal.entries):
        raise UsageError(f"there is no entry {at} to go back to", help="`koi runs tree ID` shows them.")


def going_on(history: History, journal: Journal, at: int | None, words: Sequence[str] = ()) -> Continuation:
    """What a run goes on with: in its own journal, or, as a branch, in a new one.

    Args:
        at: the entry that a branch goes back to; None where the whole journal counts.
        words: of the command line that began it.
    """
    header = journal.header
    last = journal.entries[-1].n if journal.entries else 0
    if history.policy.is_branch:
        parent = (header.run, last if at is None else at)
        return Continuation(history, seed=header.seed, today=header.today, parent=parent, words=words, case=header.case)
    return Continuation(history, header.run, header.seed, header.today, journal.end, case=header.case)
